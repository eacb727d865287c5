// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"

#define NR_KERNELS 3

const char *const image_kernels[NR_KERNELS + 1] = {
	"debian12", "debian13", "debian13-backports", NULL,
};

const char *image_directory(void)
{
	const char *dir = getenv("MMOPT_KERNELS");

	if (!dir || !*dir)
		errx(1, "set MMOPT_KERNELS to a directory of kernel images, or to none");
	return strcmp(dir, "none") ? dir : NULL;
}

static char *path_of(const char *kernel, const char *file)
{
	char *path;

	if (asprintf(&path, "%s/%s/%s", image_directory(), kernel, file) < 0)
		err(1, "asprintf");
	return path;
}

static void find_sections(struct image *image, const char *path)
{
	Elf_Scn *scn = NULL;
	size_t shstrndx;
	GElf_Shdr shdr;
	Elf *elf;
	int fd;

	elf_version(EV_CURRENT);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		err(1, "%s", path);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf || elf_getshdrstrndx(elf, &shstrndx))
		errx(1, "%s: %s", path, elf_errmsg(-1));
	image->elf = elf;

	while ((scn = elf_nextscn(elf, scn))) {
		const char *name;
		Elf_Data *data;

		if (!gelf_getshdr(scn, &shdr))
			errx(1, "%s: %s", path, elf_errmsg(-1));
		name = elf_strptr(elf, shstrndx, shdr.sh_name);
		if (!name || (strcmp(name, ".BTF") && strcmp(name, ".text")))
			continue;
		data = elf_rawdata(scn, NULL);
		if (!data || !data->d_buf)
			errx(1, "%s: section %s has no data", path, name);
		if (!strcmp(name, ".BTF")) {
			image->btf = data->d_buf;
			image->btf_len = data->d_size;
		} else {
			image->text = data->d_buf;
			image->text_len = data->d_size;
			image->text_addr = shdr.sh_addr;
		}
	}
	if (!image->btf || !image->text)
		errx(1, "%s: sections .BTF and .text are needed", path);
}

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void read_symbols(struct image *image, const char *path)
{
	size_t room = 0, len = 0;
	char *line = NULL;
	FILE *f;

	f = fopen(path, "r");
	if (!f)
		err(1, "%s", path);
	while (getline(&line, &len, f) > 0) {
		unsigned long addr;
		char name[512];

		if (sscanf(line, "%lx %*c %511s", &addr, name) != 2)
			errx(1, "%s: not a line of kallsyms: %s", path, line);
		if (addr - image->text_addr >= image->text_len)
			continue;
		if (image->nr_symbols == room) {
			room = room ? 2 * room : 1 << 16;
			image->symbols = realloc(image->symbols,
						 room * sizeof(*image->symbols));
			if (!image->symbols)
				err(1, "realloc");
		}
		image->symbols[image->nr_symbols].addr = addr;
		image->symbols[image->nr_symbols].name = strdup(name);
		image->nr_symbols++;
	}
	free(line);
	fclose(f);
	if (!image->nr_symbols)
		errx(1, "%s: no symbol in .text", path);
	qsort(image->symbols, image->nr_symbols, sizeof(*image->symbols),
	      by_address);
}

const struct image *image_open(const char *kernel)
{
	static struct image images[NR_KERNELS];
	char *vmlinux, *kallsyms;
	int i;

	for (i = 0; image_kernels[i]; i++)
		if (!strcmp(image_kernels[i], kernel))
			break;
	if (!image_kernels[i])
		errx(1, "%s: no such kernel", kernel);
	if (images[i].kernel)
		return &images[i];

	vmlinux = path_of(kernel, "vmlinux");
	kallsyms = path_of(kernel, "kallsyms");
	find_sections(&images[i], vmlinux);
	read_symbols(&images[i], kallsyms);
	images[i].kernel = kernel;
	free(vmlinux);
	free(kallsyms);
	return &images[i];
}

unsigned long image_symbol(const struct image *image, const char *name)
{
	size_t i;

	for (i = 0; i < image->nr_symbols; i++)
		if (!strcmp(image->symbols[i].name, name))
			return image->symbols[i].addr;
	return 0;
}

size_t image_function_len(const struct image *image, unsigned long addr)
{
	size_t lo = 0, hi = image->nr_symbols;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (image->symbols[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == image->nr_symbols)
		return image->text_addr + image->text_len - addr;
	return image->symbols[lo].addr - addr;
}

const uint8_t *image_bytes(const struct image *image, unsigned long addr)
{
	return image->text + (addr - image->text_addr);
}
