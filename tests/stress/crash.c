/* Where a process crashed: written to a descriptor as text, with what is mapped, then the signal's
 * own effect. Only system calls up to the maps; the backtrace after them may crash in its turn. */
#define _GNU_SOURCE
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK_WORDS = 512, MAX_FRAMES = 64 };
static int output;
static char stack[1 << 18];

static void put(const char *name, uintptr_t value) {
  char text[64];
  size_t length = strlen(name), at = sizeof text;
  text[--at] = '\n';
  do text[--at] = "0123456789abcdef"[value & 15];
  while ((value >>= 4) != 0);
  text[--at] = ' ';
  at -= length;
  memcpy(text + at, name, length);
  (void)!write(output, text + at, sizeof text - at);
}

static void copy_maps(void) {
  char block[4096];
  ssize_t count;
  int maps = open("/proc/self/maps", O_RDONLY);
  while ((count = read(maps, block, sizeof block)) > 0) (void)!write(output, block, (size_t)count);
  close(maps);
}

/* The words at the stack's top, as far as they can be read: a pipe says so without a crash. */
static void copy_stack(uintptr_t top) {
  int ends[2];
  if (pipe(ends) != 0) return;
  for (int i = 0; i < STACK_WORDS; i++) {
    uintptr_t word;
    if (write(ends[1], (void *)(top + sizeof word * (size_t)i), sizeof word) != sizeof word) break;
    if (read(ends[0], &word, sizeof word) == sizeof word) put("stack", word);
  }
}

static void report(int number, siginfo_t *info, void *context) {
  const ucontext_t *state = context;
#if defined(__x86_64__)
  uintptr_t pc = (uintptr_t)state->uc_mcontext.gregs[REG_RIP];
  uintptr_t top = (uintptr_t)state->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
  uintptr_t pc = state->uc_mcontext.pc, top = state->uc_mcontext.sp;
#else
#error "name this machine's registers here"
#endif
  void *frames[MAX_FRAMES];
  signal(number, SIG_DFL);
  put("signal", (uintptr_t)number);
  put("address", (uintptr_t)info->si_addr);
  put("pc", pc);
  copy_maps();
  copy_stack(top);
  int count = backtrace(frames, MAX_FRAMES);
  for (int i = 0; i < count; i++) put("frame", (uintptr_t)frames[i]);
  raise(number); /* blocked until this returns */
}

void crash_report_to(int descriptor) {
  static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP,
                                SIGSYS,  SIGALRM};
  stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
  struct sigaction action = {.sa_sigaction = report, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  void *frame;
  output = descriptor;
  backtrace(&frame, 1); /* loads the unwinder */
  sigaltstack(&alternate, NULL);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    sigaction(numbers[i], &action, NULL);
}
