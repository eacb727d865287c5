// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "mmopt.h"

static const char footer[] =
	"options:\n"
	"  -j, --json      one JSON object on stdout, errors included\n"
	"  -p, --pretty    the same, indented\n"
	"  -h, --help      this text\n"
	"  -V, --version   the same as the command version\n\n"
	"exit status: 0 ok, 1 failed, 2 usage, 3 not loaded, 4 no permission, 5 lockdown,\n"
	"  6 signature rejected, 7 not built for this kernel, 8 no debugfs,\n"
	"  9 path unavailable, 10 owned by another patcher, 11 calls still under way\n";

/* Those that this verb alone takes, or without one those that all do. */
static void add_options(struct json_object *obj, const struct command *cmd)
{
	struct json_object *list = json_array(obj, "options");

	for (size_t i = 0; i < options_count; i++) {
		const struct option_info *info = &options[i];
		struct json_object *option;

		if (!option_fits(info, cmd) || (cmd && option_fits(info, NULL)))
			continue;
		option = json_object_new_object();
		json_set(option, "option", "--%s", info->name);
		json_set(option, "value", "%s", info->value ? info->value : "");
		json_object_array_add(list, option);
	}
}

static void add_command(struct json_object *list, const struct command *cmd)
{
	struct json_object *obj = json_object_new_object();

	json_set(obj, "command", "%s", cmd->name);
	json_set(obj, "args", "%s", cmd->args);
	json_set(obj, "summary", "%s", cmd->summary);
	add_options(obj, cmd);
	json_object_array_add(list, obj);
}

int cmd_help(struct json_object *doc, int argc, char **argv)
{
	struct json_object *list;

	if (argc) {
		const struct command *cmd = command_find(argv[0]);

		if (!cmd)
			return RC_USAGE;
		list = json_array(doc, "commands");
		add_command(list, cmd);
		/* Its line breaks are ours, so it may go in as it is. */
		json_object_object_add(doc, "details", json_object_new_string(cmd->details));
		return RC_OK;
	}
	list = json_array(doc, "commands");
	for (size_t i = 0; i < commands_count; i++)
		if (!commands[i].hidden)
			add_command(list, &commands[i]);
	add_options(doc, NULL);
	return RC_OK;
}

static void print_usage(struct json_object *cmd)
{
	const char *args = json_str(cmd, "args");

	printf("usage: mmopt [-j | -p] %s%s%s\n\n%s.\n", json_str(cmd, "command"),
	       *args ? " " : "", args, json_str(cmd, "summary"));
}

void print_help(struct json_object *doc)
{
	struct json_object *list = json_object_object_get(doc, "commands"), *details;
	size_t i, n = json_object_array_length(list);

	if (json_object_object_get_ex(doc, "details", &details)) {
		print_usage(json_object_array_get_idx(list, 0));
		printf("%s", json_object_get_string(details));
		return;
	}
	printf("usage: mmopt [options] command [arguments]\n\n");
	for (i = 0; i < n; i++) {
		struct json_object *cmd = json_object_array_get_idx(list, i);
		const char *args = json_str(cmd, "args");
		int width = printf("  %s%s%s", json_str(cmd, "command"), *args ? " " : "", args);

		if (width > 26)
			width = printf("\n") - 1;
		printf("%*s%s\n", 28 - width, "", json_str(cmd, "summary"));
	}
	printf("\nA command may be shortened as long as it stays unambiguous.\n\n%s", footer);
}

int cmd_version(struct json_object *doc, int argc, char **argv)
{
	char version[64];

	(void)argc;
	(void)argv;
	json_set(doc, "version", "%s", MMOPT_VERSION);
	json_object_object_add(doc, "module", NULL);
	if (module_loaded(MODULE)) {
		file_line(version, sizeof(version), "/sys/module/" MODULE "/version");
		json_set(doc, "module", "%s", version);
	}
	return RC_OK;
}

void print_version(struct json_object *doc)
{
	const char *module = json_str(doc, "module");

	printf("mmopt %s, module %s\n", json_str(doc, "version"),
	       module && *module ? module : "not loaded");
}
