// SPDX-License-Identifier: GPL-2.0
/*
 * semantics GROUP: what MADV_COLD and MADV_PAGEOUT do in many situations, as
 * lines to be compared between stock code and mmopt. No line holds an address,
 * a time or anything else that varies from run to run.
 */
#include <stdio.h>
#include <string.h>

#include "semantics.h"

const struct advice advices[2] = {
	{ "COLD", MADV_COLD },
	{ "PAGEOUT", MADV_PAGEOUT },
};

static const struct {
	const char *name;
	void (*run)(void);
} groups[] = {
	{ "ranges", ranges },
	{ "files", files },
	{ "huge", huge },
	{ "vector", vector },
	{ "uring", uring },
	{ "compat", compat },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(groups); i++) {
		if (strcmp(argv[1], groups[i].name))
			continue;
		setvbuf(stdout, NULL, _IOLBF, 0);
		pin();
		groups[i].run();
		return 0;
	}
	fprintf(stderr, "usage: semantics");
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		fprintf(stderr, "%c%s", i ? '|' : ' ', groups[i].name);
	fprintf(stderr, "\n");
	return 2;
}
