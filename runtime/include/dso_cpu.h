/* dso_cpu.h: the features of this processor that a program may use.
 *
 * The core asks it before it opens a library with CPU levels, and the dispatcher of such a library
 * when it is loaded (docs/format.md, CPU levels). So it needs no C library but, on aarch64, one
 * that has getauxval: glibc or musl. A feature whose registers the system does not save counts as
 * absent. C11 and C++17, GCC and clang. */
#ifndef DSO_CPU_H
#define DSO_CPU_H

#include <stdint.h>

/* Each row of DSO_CPU_FEATURES: the name, the word that reports it and the bit in that word. */
#if defined(__x86_64__)
#include <cpuid.h>

/* Intel SDM, CPUID. Words: ECX of leaf 1; ECX of 0x80000001; EBX, ECX and EDX of leaf 7; EAX of
 * leaf 7.1. Rows after avx need the registers ymm, and rows after avx512f zmm as well. */
#define DSO_CPU_FEATURES(X) \
  X(sse3, 0, 0)             \
  X(pclmul, 0, 1)           \
  X(ssse3, 0, 9)            \
  X(cx16, 0, 13)            \
  X(sse4_1, 0, 19)          \
  X(sse4_2, 0, 20)          \
  X(movbe, 0, 22)           \
  X(popcnt, 0, 23)          \
  X(aes, 0, 25)             \
  X(lahf, 1, 0)             \
  X(lzcnt, 1, 5)            \
  X(sse4a, 1, 6)            \
  X(tbm, 1, 21)             \
  X(bmi, 2, 3)              \
  X(bmi2, 2, 8)             \
  X(adx, 2, 19)             \
  X(sha, 2, 29)             \
  X(gfni, 3, 8)             \
  X(avx, 0, 28)             \
  X(fma, 0, 12)             \
  X(f16c, 0, 29)            \
  X(xop, 1, 11)             \
  X(fma4, 1, 16)            \
  X(avx2, 2, 5)             \
  X(vaes, 3, 9)             \
  X(vpclmulqdq, 3, 10)      \
  X(avxvnni, 5, 4)          \
  X(avx512f, 2, 16)         \
  X(avx512dq, 2, 17)        \
  X(avx512ifma, 2, 21)      \
  X(avx512cd, 2, 28)        \
  X(avx512bw, 2, 30)        \
  X(avx512vl, 2, 31)        \
  X(avx512vbmi, 3, 1)       \
  X(avx512vbmi2, 3, 6)      \
  X(avx512vnni, 3, 11)      \
  X(avx512bitalg, 3, 12)    \
  X(avx512vpopcntdq, 3, 14) \
  X(avx512fp16, 4, 23)      \
  X(avx512bf16, 5, 5)
#elif defined(__aarch64__)
#include <sys/auxv.h>

/* Linux, arch/arm64/include/uapi/asm/hwcap.h. Words: AT_HWCAP and AT_HWCAP2. */
#define DSO_CPU_FEATURES(X) \
  X(fp, 0, 0)               \
  X(asimd, 0, 1)            \
  X(aes, 0, 3)              \
  X(pmull, 0, 4)            \
  X(sha1, 0, 5)             \
  X(sha2, 0, 6)             \
  X(crc32, 0, 7)            \
  X(atomics, 0, 8)          \
  X(fphp, 0, 9)             \
  X(asimdhp, 0, 10)         \
  X(asimdrdm, 0, 12)        \
  X(jscvt, 0, 13)           \
  X(fcma, 0, 14)            \
  X(lrcpc, 0, 15)           \
  X(dcpop, 0, 16)           \
  X(sha3, 0, 17)            \
  X(sm3, 0, 18)             \
  X(sm4, 0, 19)             \
  X(asimddp, 0, 20)         \
  X(sha512, 0, 21)          \
  X(sve, 0, 22)             \
  X(asimdfhm, 0, 23)        \
  X(dit, 0, 24)             \
  X(uscat, 0, 25)           \
  X(ilrcpc, 0, 26)          \
  X(flagm, 0, 27)           \
  X(ssbs, 0, 28)            \
  X(sb, 0, 29)              \
  X(paca, 0, 30)            \
  X(dcpodp, 1, 0)           \
  X(sve2, 1, 1)             \
  X(flagm2, 1, 7)           \
  X(frint, 1, 8)            \
  X(svei8mm, 1, 9)          \
  X(svebf16, 1, 12)         \
  X(i8mm, 1, 13)            \
  X(bf16, 1, 14)
#else
#define DSO_CPU_FEATURES(X) X(none, 0, 0)
#endif

#define DSO_CPU_NUMBER(name, word, bit) DSO_CPU_##name,
enum { DSO_CPU_FEATURES(DSO_CPU_NUMBER) DSO_CPU_NUM_FEATURES };

/* The bit of a feature in the result of dso_cpu_features. */
#define DSO_CPU_BIT(name) (UINT64_C(1) << DSO_CPU_##name)

#define DSO_CPU_READ(name, word, bit) \
  if (words[word] >> (bit) & 1) found |= DSO_CPU_BIT(name);

#if defined(__x86_64__)
enum { DSO_CPU_XSAVE = 26, DSO_CPU_OSXSAVE = 27, DSO_CPU_YMM = 0x6, DSO_CPU_ZMM = 0xe6 };

/* XCR0: the registers that the system saves; 0 if it uses no XSAVE. */
static inline uint32_t dso_cpu_registers(uint32_t leaf_1) {
  uint32_t low = 0, high = 0;
  if (leaf_1 >> DSO_CPU_OSXSAVE & 1) __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

/* Leaf 1 and 0x80000001 exist in every processor of 64 bits. A processor with XSAVE has leaf 13,
 * so it has leaf 7. A CPUID takes microseconds in a virtual machine, so no other is read. */
static inline uint64_t dso_cpu_features(void) {
  uint32_t words[6] = {0}, eax, ebx, ecx, edx;
  uint64_t found = 0;
  __cpuid(1, eax, ebx, words[0], edx);
  __cpuid(0x80000001, eax, ebx, words[1], edx);
  if (words[0] >> DSO_CPU_XSAVE & 1) {
    __cpuid_count(7, 0, eax, words[2], words[3], words[4]);
    if (eax > 0) __cpuid_count(7, 1, words[5], ebx, ecx, edx);
  }
  uint32_t registers = dso_cpu_registers(words[0]);
  DSO_CPU_FEATURES(DSO_CPU_READ)
  if ((registers & DSO_CPU_YMM) != DSO_CPU_YMM) found &= DSO_CPU_BIT(avx) - 1;
  if ((registers & DSO_CPU_ZMM) != DSO_CPU_ZMM) found &= DSO_CPU_BIT(avx512f) - 1;
  return found;
}
#elif defined(__aarch64__)
static inline uint64_t dso_cpu_features(void) {
  const uint64_t words[2] = {getauxval(16 /* AT_HWCAP */), getauxval(26 /* AT_HWCAP2 */)};
  uint64_t found = 0;
  DSO_CPU_FEATURES(DSO_CPU_READ)
  return found;
}
#else
static inline uint64_t dso_cpu_features(void) { return 0; }
#endif

#endif
