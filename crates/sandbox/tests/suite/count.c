// Compiled twice. With count.pl: work of several shapes. With OUTSIDE, without it: a parent that steps through the work and prints what was
// executed and what was counted, and work_sample(), which walks the stack at every 31st instruction as work.patch does.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

extern long work_instructions;
extern unsigned long work_bytes[4];
extern long work(void);

#ifndef OUTSIDE

#define WORK __attribute__((noinline, section("work_code")))

struct large { long words[64]; };

WORK static unsigned fold(const char *text, unsigned length)
{
	unsigned value = 5381;
	for (unsigned i = 0; i < length; i++)
		value = value * 33 ^ (unsigned char) text[i];
	return value;
}

// Its frame is as large as it is told, so it keeps it in a register.
WORK static unsigned hash(const char *text, unsigned length)
{
	char turned[length];
	for (unsigned i = 0; i < length; i++)
		turned[i] = text[length - 1 - i];
	return fold(turned, length) ^ fold(text, length);
}

WORK static int compare(const long *a, const long *b)
{
	if (*a > *b)
		return 1;
	if (*a == *b)
		return 0;
	return -1;
}

WORK __attribute__((optimize("no-omit-frame-pointer"))) static void sort(long *items, int count, int (*compare)(const long *, const long *))
{
	for (int i = 1; i < count; i++)
		for (int j = i; j > 0 && compare(&items[j - 1], &items[j]) > 0; j--) {
			long item = items[j];
			items[j] = items[j - 1];
			items[j - 1] = item;
		}
}

WORK static long choose(int which, long value)
{
	switch (which) {
	case 0: return value + 1;
	case 1: return value * 3;
	case 2: return value / 7;
	case 3: return value ^ 0x55;
	case 4: return value > 100 ? value - 100 : value;
	case 5: return -value;
	default: return value << 1;
	}
}

WORK static long walk(long depth)
{
	return depth < 2 ? depth : walk(depth - 1) + walk(depth - 2);
}

WORK static long copy(struct large *to, const struct large *from)
{
	*to = *from;
	return to->words[9];
}

WORK static unsigned long divide(unsigned __int128 value, unsigned long by)
{
	unsigned long quotient = 0;
	while (value >= by) {
		unsigned shift = 0;
		while (shift < 63 && value >> (shift + 1) >= by)
			shift++;
		value -= (unsigned __int128) by << shift;
		quotient += 1UL << shift;
		if (quotient & 1 || value == by)
			continue;
	}
	return quotient;
}

WORK long work(void)
{
	static long items[100];
	static struct large from, to;
	long sum = 0;
	for (int i = 0; i < 100; i++)
		items[i] = (i * 7919) % 211;
	sort(items, 100, compare);
	for (int i = 0; i < 100; i++)
		sum = choose(i % 8, sum + items[i]);
	for (unsigned i = 0; i < 9; i++)
		sum += hash("the quick brown fox", 19 - i % 3);
	sum += walk(12) + copy(&to, &from);
	return sum + divide((unsigned __int128) sum << 20, 12345);
}

#else

#define EVERY 31

struct function { unsigned long count, begun, sum, address, file, forgotten, kept; };
struct call { unsigned returns_to, function, frame; };

extern struct function __start_work_functions[], __stop_work_functions[];
extern struct call __start_work_calls[], __stop_work_calls[];
extern char __start_work_code[], __stop_work_code[];

long work_instructions = -EVERY;
unsigned long work_bytes[4];
static unsigned long base = EVERY, samples, wrong, deepest, sampled[64];

asm("	.globl work_sample\n"
    "work_sample:\n"
    "	pushq %rax; pushq %rcx; pushq %rdx; pushq %rsi; pushq %rdi\n"
    "	pushq %r8; pushq %r9; pushq %r10; pushq %r11; pushq %rbp\n"
    "	leaq 80(%rsp), %rdi\n"
    "	movq %rbp, %rsi\n"
    "	movq %rsp, %rbp\n"
    "	andq $-16, %rsp\n"
    "	call work_sampled\n"
    "	movq %rbp, %rsp\n"
    "	popq %rbp; popq %r11; popq %r10; popq %r9; popq %r8\n"
    "	popq %rdi; popq %rsi; popq %rdx; popq %rcx; popq %rax\n"
    "	ret\n");

int main(void);

__attribute__((target("general-regs-only"))) void work_sampled(unsigned long slot, unsigned long rbp)
{
	unsigned long count = work_instructions / EVERY + 1, depth = 0;
	struct call *call;

	base += count * EVERY;
	work_instructions -= count * EVERY;
	samples += count;
	unsigned long address;
	for (;;) {
		address = *(unsigned long *) slot;
		for (call = __start_work_calls; call < __stop_work_calls && call->returns_to != address; call++)
			;
		if (call == __stop_work_calls)
			break;
		if (!(call->frame & 1) && !depth++)
			sampled[(struct function *) (unsigned long) call->function - __start_work_functions] += count;
		slot = (call->frame & 2 ? rbp - 8 : slot) + (call->frame & 0xfff8);
		if (call->frame >> 16)
			rbp = *(unsigned long *) (slot + 8 - (call->frame >> 16));
	}
	if (address - (unsigned long) main > 4096)
		wrong++;
	if (depth > deepest)
		deepest = depth;
}

int main(void)
{
	int status;
	pid_t child = fork();
	if (!child) {
		work_instructions = -(base = 1UL << 62);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		volatile long done = work();
		(void) done;
		printf("counted %lu, %lu bytes\n", base + work_instructions, 8 * work_bytes[3] + 4 * work_bytes[2] + work_bytes[0]);
		fflush(stdout);
		_exit(0);
	}
	unsigned long executed = 0, own = 0;
	waitpid(child, &status, 0);
	while (WIFSTOPPED(status)) {
		unsigned long at = ptrace(PTRACE_PEEKUSER, child, 8 * 16, 0);
		if (at >= (unsigned long) __start_work_code && at < (unsigned long) __stop_work_code) {
			// Counting itself: addq $number, counter(%rip); cmpq $0, work_instructions(%rip) with the js and the call behind it.
			long code = ptrace(PTRACE_PEEKTEXT, child, at, 0);
			if ((code & 0xffffff) == 0x3d8348)
				own = at + 8;
			else if ((code & 0xfdffff) != 0x058148 && (code & 0xffffff) != 0x058348 && (code & 0xffffff) != 0x0d0148 &&
				 at != own && at != own + 2)
				executed++;
		}
		ptrace(PTRACE_SINGLESTEP, child, 0, 0);
		waitpid(child, &status, 0);
	}
	printf("executed %lu\n", executed);
	// Again, without a parent that steps through it, and with samples.
	volatile long done = work();
	(void) done;
	unsigned long off = 0;
	for (struct function *one = __start_work_functions; one < __stop_work_functions; one++) {
		long by = one->count - EVERY * sampled[one - __start_work_functions];
		if ((unsigned long) labs(by) > off)
			off = labs(by);
	}
	printf("sampled %lu, wrong %lu, deepest %lu, off %lu\n", samples, wrong, deepest, off);
	return 0;
}

#endif
