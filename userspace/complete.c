// SPDX-License-Identifier: GPL-2.0
/*
 * What a shell may offer: completions/ ask here, so that they know what the
 * command table knows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mmopt.h"

static struct json_object *words;
static const char *current;

static void offer(const char *word, const char *about)
{
	struct json_object *obj;

	if (strncmp(word, current, strlen(current)))
		return;
	for (size_t i = 0; i < json_object_array_length(words); i++)
		if (!strcmp(json_str(json_object_array_get_idx(words, i), "word"), word))
			return;
	obj = json_object_new_object();
	json_set(obj, "word", "%s", word);
	json_set(obj, "about", "%s", about);
	json_object_array_add(words, obj);
}

static void offer_options(const struct command *cmd)
{
	char word[64];

	for (size_t i = 0; i < options_count; i++) {
		snprintf(word, sizeof(word), "--%s", options[i].name);
		if (option_fits(&options[i], cmd))
			offer(word, options[i].value ? options[i].value : "");
	}
}

static void offer_commands(void)
{
	for (size_t i = 0; i < commands_count; i++)
		if (!commands[i].hidden)
			offer(commands[i].name, commands[i].summary);
}

static void offer_path(const char *name, int given, char **operands)
{
	for (int i = 0; i < given; i++)
		if (!strcmp(operands[i], name))
			return;
	offer(name, path_summary(name));
}

/* Those of the module, or, for who may not look, those that this tool knows. */
static void offer_paths(int given, char **operands)
{
	static const char *const known[] = {
#define X(id, summary) #id,
		MMOPT_PATHS(X)
#undef X
	};
	struct path_list list;

	if (control_find() != CONTROL_OK) {
		for (size_t i = 0; i < ARRAY_SIZE(known); i++)
			offer_path(known[i], given, operands);
		return;
	}
	paths_read(&list);
	for (size_t i = 0; i < list.n; i++)
		offer_path(list.v[i].name, given, operands);
	paths_free(&list);
}

static void offer_parameters(void)
{
	struct module_info info;
	char word[128];

	module_find(&info);
	for (size_t i = 0; i < json_object_array_length(info.params); i++) {
		struct json_object *name = json_object_array_get_idx(info.params, i);

		snprintf(word, sizeof(word), "%s=", json_object_get_string(name));
		offer(word, "module parameter");
	}
	module_info_free(&info);
}

static void offer_operands(const struct command *cmd, int given, char **operands)
{
	if (cmd->operands == OPERANDS_PATHS_OR_ALL && !given)
		offer("all", "every path");
	switch (cmd->operands) {
	case OPERANDS_NONE:
	case OPERANDS_FILE:
		break;
	case OPERANDS_PATHS_OR_ALL:
	case OPERANDS_PATHS:
		offer_paths(given, operands);
		break;
	case OPERANDS_COMMAND:
		if (!given)
			offer_commands();
		break;
	case OPERANDS_PARAMETERS:
		offer_parameters();
		break;
	}
}

/* The value that @word, an option, has in the next word, or NULL. */
static const char *value_after(const char *word)
{
	for (size_t i = 0; i < options_count; i++)
		if (!strncmp(word, "--", 2) && !strcmp(word + 2, options[i].name))
			return options[i].value;
	return NULL;
}

/* @argv: what follows "mmopt" on the command line, up to the word at the cursor. */
int cmd_complete(struct json_object *doc, int argc, char **argv)
{
	const struct command *cmd = NULL;
	const char *value = NULL;
	char **operands = argv;
	int given = 0;

	words = json_array(doc, "words");
	if (!argc)
		return RC_OK;
	current = argv[argc - 1];
	for (int i = 0; i < argc - 1; i++) {
		if (value) {
			value = NULL;
			continue;
		}
		/* a command of the user's */
		if (!strcmp(argv[i], "--")) {
			json_set_bool(doc, "files", true);
			return RC_OK;
		}
		value = value_after(argv[i]);
		if (*argv[i] == '-')
			continue;
		if (cmd) {
			operands[given++] = argv[i];
			continue;
		}
		cmd = command_match(argv[i], NULL, 0);
		if (!cmd)
			return RC_OK;
	}
	if (value)
		json_set_bool(doc, "files", !strcmp(value, "FILE"));
	else if (*current == '-')
		offer_options(cmd);
	else if (cmd && cmd->operands == OPERANDS_FILE && !given)
		json_set_bool(doc, "files", true);
	else if (cmd)
		offer_operands(cmd, given, operands);
	else
		offer_commands();
	return RC_OK;
}

/* A word and what it means in each line; a colon instead for the names of files. */
void print_complete(struct json_object *doc)
{
	struct json_object *list = json_object_object_get(doc, "words");

	if (json_flag(doc, "files"))
		puts(":");
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *word = json_object_array_get_idx(list, i);

		printf("%s\t%s\n", json_str(word, "word"), json_str(word, "about"));
	}
}
