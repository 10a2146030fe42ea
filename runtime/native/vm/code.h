/* Bytecode of TVM's relax virtual machine in its file format, and its verifier.
 *
 * An instruction is a row of 64-bit words (tvm/runtime/vm/bytecode.h):
 *
 *     call   1, dst, function, num_args, num_args x argument
 *     ret    2, register
 *     goto   3, offset                     relative to this instruction, counted in instructions
 *     if     4, register, false_offset     jump if the register is zero, else continue
 *
 * An argument has its kind in the highest byte, and a signed value in the other bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* bytecode.h, Opcode */
enum vm_opcode { VM_CALL = 1, VM_RET = 2, VM_GOTO = 3, VM_IF = 4 };

/* bytecode.h, Instruction::ArgKind */
enum vm_argument_kind { VM_REGISTER = 0, VM_IMMEDIATE = 1, VM_CONSTANT = 2, VM_FUNCTION = 3 };

/* bytecode.h, kVoidRegister and kVMRegister: no value, and the machine itself. */
static const int64_t VM_VOID_REGISTER = (int64_t)1 << 54,
                     VM_CONTEXT_REGISTER = VM_VOID_REGISTER + 1;

/* executable.h, VMFuncInfo::FuncKind: looked up by name, bytecode, compiled ("__vmtir__" +
 * name). */
enum vm_kind { VM_PACKED = 0, VM_BYTECODE = 1, VM_COMPILED = 2 };

struct vm_function {
  const char *name;
  int64_t kind, start, end, num_args, num_registers, num_params;
};

struct vm_code {
  struct vm_function *functions;
  size_t num_functions, num_constants, num_instructions, num_words;
  const unsigned char *offsets; /* one word per instruction: its index in `words` */
  const unsigned char *words;   /* both little-endian and unaligned, as in the file */
};

/* The location of a fault in the file: an entry of one of its three tables. */
enum vm_table { VM_FUNCTIONS, VM_OFFSETS, VM_WORDS };

struct vm_fault {
  enum vm_table table;
  size_t index;
  char text[256];
};

static inline int64_t vm_word(const unsigned char *words, size_t index) {
  int64_t word;
  memcpy(&word, words + 8 * index, sizeof word);
  return word;
}

static inline int64_t vm_argument_kind(int64_t argument) { return (argument >> 56) & 0xff; }
static inline int64_t vm_argument_value(int64_t argument) {
  return (int64_t)((uint64_t)argument << 8) >> 8;
}

enum { VM_NO_MEMORY = -2 };

/* Verify all of the code. Returns 0, -1 with the fault, or VM_NO_MEMORY. From there on every
 * instruction belongs to exactly one function, every jump stays in its function, control never
 * leaves a function but by ret, and all registers, constants, functions and argument counts are
 * valid. Time and memory are linear in the size of the code. */
int vm_verify(const struct vm_code *code, struct vm_fault *fault);

/* Get the number of arguments of a built-in function. Returns 1, or 0 if there is no such function.
 * `most` may be INT32_MAX. */
int vm_builtin_arity(const char *name, int32_t *least, int32_t *most);
