/* SPDX-License-Identifier: GPL-2.0 */
/* Kernel images of the test matrix: an ELF vmlinux and its kallsyms. */
#ifndef IMAGE_H
#define IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbol {
	unsigned long addr;
	char *name;
};

struct image {
	const char *kernel;		/* "debian13" */
	const uint8_t *btf;		/* .BTF section */
	size_t btf_len;
	const uint8_t *text;		/* .text section */
	size_t text_len;
	unsigned long text_addr;
	struct symbol *symbols;		/* those in .text, by address */
	size_t nr_symbols;
	void *elf;			/* owns the bytes of the sections */
};

/* Names of the kernels of the matrix, NULL at the end. */
extern const char *const image_kernels[];

/*
 * The directory that the environment variable MMOPT_KERNELS names, with
 * KERNEL/vmlinux and KERNEL/kallsyms in it. NULL if that is "none": the caller
 * leaves its tests out. Exits with a message if it is not set.
 */
const char *image_directory(void);

/* Exits with a message if an image is missing or not what it should be. */
const struct image *image_open(const char *kernel);

/* Address of a function, 0 if there is none of this name. */
unsigned long image_symbol(const struct image *image, const char *name);

/* Length up to the next symbol. */
size_t image_function_len(const struct image *image, unsigned long addr);

/* The bytes at an address in .text. */
const uint8_t *image_bytes(const struct image *image, unsigned long addr);

#endif /* IMAGE_H */
