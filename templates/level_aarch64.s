// Choose the CPU level of a library when it is loaded (docs/format.md, CPU levels).
//
// runtime/trust/hardening/forms_aarch64.py has the same bytes: a hardened load accepts this constructor,
// and no other. So it takes all that differs from library to library from the data after it, and
// all text that it prints is its own. packer/levels/dispatcher.py writes the tables.
.section .init_array.00000,"aw",%init_array // before the constructors of users
.balign 8
.quad packer_cpu_set
.section .data.rel.ro,"aw",%progbits
.balign 8
packer_cpu_getauxval: .quad getauxval
packer_cpu_getenv: .quad getenv
packer_cpu_dprintf: .quad dprintf
.text
.balign 16
packer_cpu_set:
  hint #34 // bti c
  stp x29, x30, [sp, #-64]!
  mov x29, sp
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  stp x23, x24, [sp, #48]
  adr x19, packer_cpu_head
  // x20, x21: the inverted words of DSO_CPU_FEATURES (dso_cpu.h)
  ldr x8, [x19]
  ldr x8, [x19, x8]
  mov x0, #16 // AT_HWCAP
  blr x8
  mvn x20, x0
  ldr x8, [x19]
  ldr x8, [x19, x8]
  mov x0, #26 // AT_HWCAP2
  blr x8
  mvn x21, x0
  // x22: the value of DSO_CPU or NULL
  adr x0, packer_cpu_variable
  ldr x8, [x19, #8]!
  ldr x8, [x19, x8]
  blr x8
  mov x22, x0
  // w24: the best level, or the first one that DSO_CPU names; -1 for none
  mov w24, #-1
  adr x23, packer_cpu_levels
  mov w9, #0
  ldr w10, [x19, #28]
1:
  ldp x11, x12, [x23, #16]
  and x11, x11, x20
  and x12, x12, x21
  orr x11, x11, x12
  cbnz x11, 3f
  mov w24, w9
  cbz x22, 3f
  mov x13, #0
2:
  ldrb w11, [x22, x13]
  ldrb w12, [x23, x13]
  cmp w11, w12
  b.ne 3f
  add x13, x13, #1
  cbnz w11, 2b
  b 6f
3:
  add x23, x23, #32
  add w9, w9, #1
  cmp w9, w10
  b.lo 1b
  adr x23, packer_cpu_levels
  tbnz w24, #31, 4f
  cbz x22, 6f
  ldrb w11, [x22]
  cbz w11, 6f
  adr x1, packer_cpu_absent
  mov x2, x22
  add x3, x23, x24, lsl #5
  b 5f
4:
  mov w24, #0
  adr x1, packer_cpu_lesser
  mov x2, x23
5:
  mov w0, #2
  add x9, x19, #8
  ldr x8, [x9]
  ldr x8, [x9, x8]
  blr x8
6:
  // x12: the distances of the targets, a row for each level, from their first one
  ldr w10, [x19, #28]
  adr x12, packer_cpu_levels
  add x12, x12, x10, lsl #5
  ldr w9, [x19, #24]
  mul x11, x24, x9
  add x11, x12, x11, lsl #2
  add x13, x19, #16
  ldr x14, [x13]
  add x13, x13, x14
7:
  cbz w9, 8f
  ldrsw x14, [x11], #4
  add x14, x14, x12
  str x14, [x13], #8
  sub w9, w9, #1
  b 7b
8:
  ldp x23, x24, [sp, #48]
  ldp x21, x22, [sp, #32]
  ldp x19, x20, [sp, #16]
  ldp x29, x30, [sp], #64
  ret
packer_cpu_variable: .asciz "DSO_CPU"
packer_cpu_absent: .asciz "DSO_CPU: level %.40s is not in a library, or not of this processor; %.16s is used\n"
packer_cpu_lesser: .asciz "DSO_CPU: this processor has less than %.16s, the lowest level of a library; its code may end the process\n"
.balign 8, 0
packer_cpu_head:
.quad packer_cpu_getauxval - .
.quad packer_cpu_getenv - .
.quad packer_cpu_dprintf - .
.quad packer_cpu_slots - .
.long packer_cpu_num_functions
.long packer_cpu_num_levels
packer_cpu_levels:
