// Work of several shapes, assembled with count.pl, and a parent that steps through it: prints what was executed and what was counted.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

volatile unsigned long work_instructions, work_bytes[4];
extern char __start_work_code[], __stop_work_code[];

#define WORK __attribute__((noinline, section("work_code")))

struct large { long words[64]; };

WORK static unsigned hash(const char *text, unsigned length)
{
	unsigned value = 5381;
	for (unsigned i = 0; i < length; i++)
		value = value * 33 ^ (unsigned char) text[i];
	return value;
}

WORK static int compare(const long *a, const long *b)
{
	if (*a > *b)
		return 1;
	if (*a == *b)
		return 0;
	return -1;
}

WORK static void sort(long *items, int count, int (*compare)(const long *, const long *))
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
	static long items[200];
	static struct large from, to;
	long sum = 0;
	for (int i = 0; i < 200; i++)
		items[i] = (i * 7919) % 211;
	sort(items, 200, compare);
	for (int i = 0; i < 200; i++)
		sum = choose(i % 8, sum + items[i]);
	sum += hash("the quick brown fox", 19) + walk(12) + copy(&to, &from);
	return sum + divide((unsigned __int128) sum << 20, 12345);
}

int main(void)
{
	int status;
	pid_t child = fork();
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		unsigned long before = work_instructions;
		volatile long done = work();
		(void) done;
		printf("counted %lu, %lu bytes\n", work_instructions - before, 8 * work_bytes[3] + 4 * work_bytes[2] + work_bytes[0]);
		fflush(stdout);
		_exit(0);
	}
	unsigned long executed = 0;
	waitpid(child, &status, 0);
	while (WIFSTOPPED(status)) {
		unsigned long at = ptrace(PTRACE_PEEKUSER, child, 8 * 16, 0);
		if (at >= (unsigned long) __start_work_code && at < (unsigned long) __stop_work_code) {
			// addq $number, counter(%rip): the counting itself.
			long code = ptrace(PTRACE_PEEKTEXT, child, at, 0);
			if ((code & 0xfdffff) != 0x058148 && (code & 0xffffff) != 0x058348 && (code & 0xffffff) != 0x0d0148)
				executed++;
		}
		ptrace(PTRACE_SINGLESTEP, child, 0, 0);
		waitpid(child, &status, 0);
	}
	printf("executed %lu\n", executed);
	return 0;
}
