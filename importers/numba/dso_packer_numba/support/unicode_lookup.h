/* unicode_lookup.h: the functions of unicode.c, which defines the tables before. */
#ifndef DSO_PACKER_NUMBA_UNICODE_LOOKUP_H
#define DSO_PACKER_NUMBA_UNICODE_LOOKUP_H

#ifndef NB_VISIBLE /* for tests */
#pragma GCC visibility push(hidden)
#endif

void numba_gettyperecord(uint32_t code, int *upper, int *lower, int *title, unsigned char *decimal,
                         unsigned char *digit, unsigned short *flags);
uint32_t numba_get_PyUnicode_ExtendedCase(int place);

void numba_gettyperecord(uint32_t code, int *upper, int *lower, int *title, unsigned char *decimal,
                         unsigned char *digit, unsigned short *flags) {
  uint32_t known = code < NB_UNICODE_CHARACTERS ? code : NB_UNICODE_CHARACTERS - 1;
  uint32_t block = nb_unicode_blocks[known / NB_UNICODE_BLOCK];
  uint32_t number = nb_unicode_numbers[block * NB_UNICODE_BLOCK + known % NB_UNICODE_BLOCK];
  const struct nb_unicode_record *record = &nb_unicode_records[number];
  *upper = record->upper;
  *lower = record->lower;
  *title = record->title;
  *decimal = record->decimal;
  *digit = record->digit;
  *flags = record->flags;
}

uint32_t numba_get_PyUnicode_ExtendedCase(int place) { return nb_unicode_extended[place]; }

#endif
