#!/usr/bin/perl
# An assembler that makes a kernel count its instructions: the compiler runs it in the place of "as", which it runs on the text it was
# given, with additions to the counters of work.patch.
#
# A straight piece of a function (from a label, or from behind a jump, to the next label or jump) is counted by one addition of the number of its
# instructions. An addition changes the processor's flags, so it goes where nothing reads them before they are written anew; a
# piece without such a place (a jump behind another, of one comparison) is counted with the piece that falls through to it.
# What a string instruction or one of the assembler's mem* functions copies or fills is counted in bytes.
#
# work_instructions is negative until work_sample() has something to do. Where a function is entered or left it is compared with 0, so what
# was executed since the last comparison is all of one function and one stack. For work_sample() to walk that stack, work_calls has
# where each call returns to, in which function, and how the frame lies there, by the compiler's directives for debuggers: how far the
# stack's pointer, or with 2 more %rbp, is below the caller's frame, and 65536 times how far below that its %rbp is kept; 1 more is for
# the call at an entry, before which the caller ran. A jump to another function that depends on a condition is not seen.
use strict;
use warnings;

my @arguments = @ARGV;
my ($input, $output) = (-1, "");
for (my $i = 0; $i < @arguments; $i++) {
    if ($arguments[$i] eq "-o") { $output = $arguments[++$i] }
    elsif ($arguments[$i] eq "-I") { $i++ }
    elsif ($arguments[$i] !~ /^-/) { $input = $i }
}
my $copies = $output =~ m{arch/x86/um/\.\./lib/mem\w+\.o$|arch/x86/lib/mem\w+\.o$};
# User-mode Linux's own glue, what runs in its processes, and its view of the host's files are of no other kernel.
my $counts = !$copies && $output =~ /\.o$/ && $output !~ m{^(\./)?(arch|scripts|usr|fs/hostfs)/|(^|/)\.[^/]*$};
if ($input < 0 || $arguments[$input] !~ /\.s$/ || !($copies || $counts)) {
    exec "as", @arguments or die "as: $!";
}
# It pads with zeros to the end of a page, and only user-mode Linux uses it for every name that a process passes.
my %uncounted = (strncpy => 1);

open my $file, "<", $arguments[$input] or die "$arguments[$input]: $!";
my @lines = <$file>;
close $file;
# By function: its number, and how many of its calls have labels.
my (@table, @calls, %number_of, %sites, %is_global);
(my $source = $output) =~ s{^\./|\.o$}{}g;
if ($copies) {
    s/\b(__mem(?:cpy|move|set)):/$1: addq %rdx, work_bytes(%rip);/ for @lines;
} else {
    count();
}
# Without a name, so that there is nothing to be guessed by others, or left behind.
open my $counted, "+>", undef or die "a temporary file: $!";
print $counted @lines, map { "\t.section work_functions, \"aw\", \@progbits\n\t.balign 8\n.Lwork$_->[0]:\t.quad 0, 0, 0, $_->[1], $_->[2], 0, 0\n" } @table
    or die "a temporary file: $!";
print $counted "\t.section .rodata\n.Lwork_file:\t.string \"$source.c\"\n" or die "a temporary file: $!" if @table;
print $counted "\t.section work_calls, \"a\", \@progbits\n", map { "\t.long $_->[0], .Lwork$_->[1], $_->[2]\n" } @calls or die "a temporary file: $!" if @calls;
seek $counted, 0, 0 or die "a temporary file: $!";
open STDIN, "<&", $counted or die "a temporary file: $!";
$arguments[$input] = "--";
exec "as", @arguments or die "as: $!";

# Finds the functions, as lists of [kind, line, word, operands].
sub count {
    my ($text, @stack) = (1);
    my (%is_function, %is_text, $function, @items);
    my $assembler;
    for my $i (0 .. $#lines) {
        my $line = $lines[$i];
        if ($line =~ /^\s*\.cfi_(\w+)\s*(.*)/) {
            push @items, ["frame", $i, $1, $2] if defined $function && $text && !defined $assembler;
            $lines[$i] = "";
            next;
        }
        if ($line =~ /^#APP/) { $assembler = $i; next }
        if ($line =~ /^#NO_APP/) {
            my ($instructions, $jumps) = opaque($assembler + 1, $i - 1);
            push @items, ["opaque", $assembler, $instructions, $jumps] if defined $function && $text;
            undef $assembler;
            next;
        }
        next if defined $assembler;
        if ($line =~ /^\s*\.type\s+([^\s,]+),\s*\@function/) { $is_function{$1} = 1; next }
        if ($line =~ /^\s*\.(text|data|bss|section|pushsection|popsection|previous)\b\s*(.*)/) {
            my ($directive, $name) = ($1, $2);
            if ($directive eq "popsection" || $directive eq "previous") { $text = pop @stack // 1 }
            else {
                push @stack, $text;
                my ($section, $flags) = $directive eq "section" || $directive eq "pushsection" ? split(/,\s*/, $name) : ("", undef);
                $is_text{$section} = $flags =~ /x/ if defined $flags;
                $text = $directive eq "text" || $name =~ /^"?\.\w*\.?text\b/ || $is_text{$section} ? 1 : 0;
            }
            next;
        }
        $is_global{$1} = 1 if $line =~ /^\s*\.(?:globl|weak)\s+(\S+)/;
        next unless $text;
        if ($line =~ /^([^\s:#"]+):/) {
            if ($is_function{$1}) {
                finish($function, \@items);
                ($function, @items) = ($1);
            }
            push @items, ["label", $i, $1] if defined $function;
            # Its argument is the only register that matters before its first instruction.
            $lines[$i] .= "\tpushq\t%rdi\n\tcall\twork_charge\n\tpopq\t%rdi\n" if $is_function{$1} && $1 =~ /^__schedule(?:\.\w+)*$/;
        } elsif (defined $function && $line =~ /^\s+([a-z]\w*)\s*(.*)/) {
            my ($word, $operands) = ($1, $2);
            ($word, $operands) = ($1, $2) if $word =~ /^(?:lock|notrack)$/ && $operands =~ /^(\w+)\s*(.*)/;
            push @items, ["instruction", $i, $word, $operands];
        }
    }
    finish($function, \@items);
}

# What a piece of the source's own assembler has: how many instructions that are in the function's text, and whether it may jump.
sub opaque {
    my ($from, $to) = @_;
    my ($instructions, $jumps, $apart) = (0, 0, 0);
    for my $line (map { split /;/ } @lines[$from .. $to]) {
        $jumps = 1 if $line =~ /\.L/;
        if ($line =~ /^\s*\.(pushsection|section)\b/) { $apart = 1 }
        elsif ($line =~ /^\s*\.(popsection|previous)\b/) { $apart = 0 }
        elsif (!$apart && $line =~ /^\s*(?:\d+:)?\s*[a-z]/) { $instructions++ }
    }
    return ($instructions, $jumps);
}

my ($WRITES, $READS, $NEITHER);
BEGIN {
    $WRITES = qr/^(?:add|sub|cmp|test|and|andn|or|xor|neg|cmpxchg|xadd)[bwlq]?$/;
    $READS = qr/^(?:j(?!mp)\w+|set\w+|cmov\w+|adc\w?|sbb\w?|rc[lr]\w?|pushf\w?|lahf|cmc)$/;
    $NEITHER = qr/^(?:mov\w*|lea\w?|push[wq]?|pop[wq]?|nop\w?|inc\w?|dec\w?|sh[lr]d?[bwlq]?|sa[lr][bwlq]?|ro[lr][bwlq]?|s?h?i?mul[bwlq]?|i?div[bwlq]?|not[bwlq]?|bt[scr]?[bwlq]?|bs[fr][wlq]?|bswap\w?|xchg\w?|c[bwlq]t[bwlqd]|cqto|cltd|cwtl|cltq|endbr64|leave|popcnt\w?|[lt]zcnt\w?|rep|prefetch\w*|[lms]fence)$/;
}

sub finish {
    my ($function, $items) = @_;
    return if !defined $function || !@$items || $uncounted{$function};
    # Where the flags are read before they are written: from the end, until nothing changes.
    my (%at, @read);
    $at{$_->[2]} = 0 for grep { $_->[0] eq "label" } @$items;
    my $changed = 1;
    while ($changed) {
        $changed = 0;
        my $next = 0;
        for my $i (reverse 0 .. $#$items) {
            my ($kind, undef, $word, $operands) = @{$items->[$i]};
            if ($kind eq "frame") {
            } elsif ($kind eq "label") {
                if ($next && !$at{$word}) { $at{$word} = 1; $changed = 1 }
            } elsif ($kind eq "opaque" || $word =~ /^(?:ret|call|ud2|hlt)/ || ($word eq "rep" && $operands =~ /ret/)) {
                $next = 0;
            } elsif ($word eq "jmp") {
                # Another function begins with nothing to read; what is not known may read.
                $next = $at{$operands} // ($operands =~ /^(?:\*|\.L)/ ? 1 : 0);
            } elsif ($word =~ $WRITES) {
                $next = 0;
            } elsif ($word =~ $READS || $word !~ $NEITHER) {
                $next = 1;
            }
            $read[$i] = $next;
        }
    }
    # What the compiler moves apart of a function is entered by jumps, and counted with it.
    (my $whole = $function) =~ s/\.cold(\.\d+)?$//;
    my $number = $number_of{$whole} // keys %number_of;
    my (@pieces, $piece);
    my $falls_through = 0;
    my $begin = sub { $piece = {weight => 0, falls => $_[0]}; push @pieces, $piece };
    $begin->(0);
    # As above; 0 if it is not known.
    my ($frame, $is_kept, $kept, @frames) = (8, 0, 0);
    my $site = sub { my $label = ".Lwork${number}_" . $sites{$number}++; push @calls, [$label, $number, $_[0]]; $label };
    my $sample = sub { my $label = $site->($_[0]); "\tcmpq\t\$0, work_instructions(%rip)\n\tjs\t$label\n\tcall\twork_sample\n$label:\n" };
    my $entry = $function ne $whole ? "" : $sample->(8 + 1);
    for my $i (0 .. $#$items) {
        my ($kind, $line, $word, $operands) = @{$items->[$i]};
        if ($kind eq "frame") {
            my ($register, $offset) = $operands =~ /^(\d+)(?:,\s*(-?\d+))?/;
            if ($word eq "startproc") { ($frame, $is_kept, $kept, @frames) = (8, 0, 0) }
            elsif ($word eq "def_cfa_offset") { $frame = $register if $frame }
            elsif ($word eq "adjust_cfa_offset") { $frame += $operands if $frame }
            elsif ($word eq "def_cfa") { ($frame, $is_kept) = $register =~ /^[67]$/ ? ($offset, $register == 6) : (0, 0) }
            elsif ($word eq "def_cfa_register") { ($frame, $is_kept) = $register =~ /^[67]$/ ? ($frame, $register == 6) : (0, 0) }
            elsif ($word eq "escape") { $frame = 0 }
            elsif ($word eq "offset" && $register == 6) { $kept = -$offset }
            elsif ($word eq "restore" && $register == 6) { $kept = 0 }
            elsif ($word eq "remember_state") { push @frames, [$frame, $is_kept, $kept] }
            elsif ($word eq "restore_state" && @frames) { ($frame, $is_kept, $kept) = @{pop @frames} }
            next;
        }
        if ($kind eq "label") {
            $begin->($falls_through);
            $falls_through = 1;
            next;
        }
        if ($kind eq "opaque") {
            $piece->{before} //= $line;
            $piece->{weight} += $word;
            $begin->(1) if $operands;
            $falls_through = 1;
            next;
        }
        $piece->{before} //= $line if !$read[$i];
        $piece->{weight}++;
        if ($word =~ /^call/) {
            $lines[$line] .= $site->($frame + ($is_kept ? 2 : 0) + 65536 * $kept) . ":\n" if $frame;
        } elsif ($word eq "ret" || ($word eq "rep" && $operands =~ /ret/) || ($word eq "jmp" && $operands !~ /^\.L|^\*.*\.L/ && $frame == 8 && !$is_kept)) {
            $lines[$line] = $sample->(8) . $lines[$line];
        }
        $falls_through = 1;
        if ($word eq "rep" && $operands =~ /^(?:stos|movs)([bwlq])/ && !$read[$i]) {
            my $offset = {b => 0, w => 8, l => 16, q => 24}->{$1};
            $lines[$line] = "\taddq\t%rcx, work_bytes+$offset(%rip)\n$lines[$line]";
        }
        if ($word =~ /^j/ || $word =~ /^(?:ret|ud2)/ || ($word eq "rep" && $operands =~ /ret/)) {
            $falls_through = $word =~ /^j(?!mp)/ ? 1 : 0;
            $begin->($falls_through);
        }
    }
    my $added = 0;
    for my $i (reverse 0 .. $#pieces) {
        my $one = $pieces[$i];
        next unless $one->{weight};
        if (defined $one->{before}) {
            my $weight = $one->{weight};
            $lines[$one->{before}] = "\taddq\t\$$weight, work_instructions(%rip)\n\taddq\t\$$weight, .Lwork$number(%rip)\n$lines[$one->{before}]";
            $added = 1;
        } elsif ($one->{falls} && $i) {
            $pieces[$i - 1]{weight} += $one->{weight};
        }
    }
    # The first label is the function's own.
    $lines[$items->[0][1]] =~ s/\n/\n$entry/;
    return if !$added && !$sites{$number} || defined $number_of{$whole};
    $number_of{$whole} = $number;
    push @table, [$number, $function, $is_global{$function} ? 0 : ".Lwork_file"];
}
