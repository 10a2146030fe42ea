# Choose the CPU level of a library when it is loaded (docs/format.md, CPU levels).
#
# runtime/trust/hardening/forms_x86_64.py has the same bytes: a hardened load accepts this constructor,
# and no other. So it takes all that differs from library to library from the data after it, and
# all text that it prints is its own. packer/levels/dispatcher.py writes the tables.
.section .init_array.00000,"aw",@init_array # before the constructors of users
.balign 8
.quad packer_cpu_set
.section .data.rel.ro,"aw",@progbits
.balign 8
packer_cpu_getenv: .quad getenv
packer_cpu_dprintf: .quad dprintf
.text
.balign 16
packer_cpu_set:
  endbr64
  push %rbx
  push %rbp
  push %r12
  push %r13
  sub $40, %rsp
  lea packer_cpu_head(%rip), %r12
  # (%rsp): the inverted words of DSO_CPU_FEATURES (dso_cpu.h), and XCR0 as the seventh.
  xor %esi, %esi
  mov %rsi, 8(%rsp)
  mov %rsi, 16(%rsp)
  mov %rsi, 24(%rsp)
  mov $1, %eax
  cpuid
  mov %ecx, (%rsp)
  mov %ecx, %ebp
  mov $0x80000001, %eax
  cpuid
  mov %ecx, 4(%rsp)
  bt $26, %ebp # XSAVE: leaf 7 exists
  jnc 1f
  mov $7, %eax
  xor %ecx, %ecx
  cpuid
  mov %ebx, 8(%rsp)
  mov %ecx, 12(%rsp)
  mov %edx, 16(%rsp)
  test %eax, %eax
  je 1f
  mov $7, %eax
  mov $1, %ecx
  cpuid
  mov %eax, 20(%rsp)
1:
  bt $27, %ebp # OSXSAVE
  jnc 2f
  xor %ecx, %ecx
  xgetbv
  mov %eax, 24(%rsp)
2:
  notq (%rsp)
  notq 8(%rsp)
  notq 16(%rsp)
  notq 24(%rsp)
  # rbp: the value of DSO_CPU or NULL
  lea packer_cpu_variable(%rip), %rdi
  mov (%r12), %rax
  call *(%r12, %rax)
  mov %rax, %rbp
  # r13d: the best level, or the first one that DSO_CPU names; -1 for none
  mov $-1, %r13d
  lea packer_cpu_levels(%rip), %rbx
  xor %edx, %edx
3:
  mov 16(%rbx), %rax
  and (%rsp), %rax
  mov 24(%rbx), %rcx
  and 8(%rsp), %rcx
  or %rcx, %rax
  mov 32(%rbx), %rcx
  and 16(%rsp), %rcx
  or %rcx, %rax
  mov 40(%rbx), %rcx
  and 24(%rsp), %rcx
  or %rcx, %rax
  jne 5f
  mov %edx, %r13d
  test %rbp, %rbp
  je 5f
  xor %esi, %esi
4:
  mov (%rbp, %rsi), %al
  cmp (%rbx, %rsi), %al
  jne 5f
  inc %esi
  test %al, %al
  jne 4b
  jmp 8f
5:
  add $48, %rbx
  inc %edx
  cmp 28(%r12), %edx
  jb 3b
  test %r13d, %r13d
  js 6f
  test %rbp, %rbp
  je 8f
  cmpb $0, (%rbp)
  je 8f
  imul $48, %r13d, %ecx
  lea packer_cpu_levels(%rip), %rax
  add %rax, %rcx
  mov %rbp, %rdx
  lea packer_cpu_absent(%rip), %rsi
  jmp 7f
6:
  xor %r13d, %r13d
  lea packer_cpu_levels(%rip), %rdx
  lea packer_cpu_lesser(%rip), %rsi
7:
  mov $2, %edi
  mov 8(%r12), %r11
  xor %eax, %eax # no vector registers in a call with variable arguments
  call *8(%r12, %r11)
8:
  # rdi: the distances of the targets, a row for each level, from their first one
  imul $48, 28(%r12), %eax
  lea packer_cpu_levels(%rip), %rdi
  add %rax, %rdi
  mov 24(%r12), %ecx
  mov %r13d, %eax
  imul %rcx, %rax
  lea (%rdi, %rax, 4), %rsi
  mov 16(%r12), %rdx
  lea 16(%r12, %rdx), %rdx
9:
  test %ecx, %ecx
  je 10f
  movslq (%rsi), %rax
  add %rdi, %rax
  mov %rax, (%rdx)
  add $4, %rsi
  add $8, %rdx
  dec %ecx
  jmp 9b
10:
  add $40, %rsp
  pop %r13
  pop %r12
  pop %rbp
  pop %rbx
  ret
packer_cpu_variable: .asciz "DSO_CPU"
packer_cpu_absent: .asciz "DSO_CPU: level %.40s is not in a library, or not of this processor; %.16s is used\n"
packer_cpu_lesser: .asciz "DSO_CPU: this processor has less than %.16s, the lowest level of a library; its code may end the process\n"
packer_cpu_head:
.quad packer_cpu_getenv - .
.quad packer_cpu_dprintf - .
.quad packer_cpu_slots - .
.long packer_cpu_num_functions
.long packer_cpu_num_levels
packer_cpu_levels:
