"""The codes of vm.builtin.match_shape and make_shape (TVM, builtin.h): each with an operand."""

# Of a shape to match: an extent that is the operand, that the slot of the operand stores, of any
# size, or that the slot has.
EQUAL, STORE, ANY, EQUAL_TO_SLOT = 0, 1, 2, 3
# Of a shape to make: the operand, or the number of its slot.
FIXED, SLOT = 0, 1
