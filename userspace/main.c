// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mmopt.h"

struct options opts = { .timeout_s = 60 };

const struct command commands[] = {
	{
		.name = "ab", .args = "[OPTION...] PATH... [-- COMMAND [ARGUMENT...]]",
		.summary = "measure what paths do for the load of this host",
		.details = "\nSwitches the paths off and on in turns, while the load of this\n"
			   "host, or COMMAND, runs, and compares how long calls took. See\n"
			   "mmopt(8) for what the verdict means.\n\n"
			   "  --seconds N         how long (60, or until COMMAND ends)\n"
			   "  --window S          length of a window between two switches (1)\n"
			   "  --metric COMMAND    a number of your own, asked for in each window\n"
			   "  --lower-is-better   of that number;\n"
			   "  --higher-is-better  without either, it is only said if it differs\n"
			   "  --csv FILE          every window\n"
			   "  --plot FILE         a picture, .svg or .png; needs gnuplot\n"
			   "  --html FILE         result and picture in one page; needs gnuplot\n"
			   "  --seed N            the same order of windows as in the run with that seed\n"
			   "  --aa                a check of itself: the paths stay off\n"
			   "  --timeout SECONDS   how long to wait for calls under way in the end (60)\n"
			   "\nHowever it ends, the paths are left as they were found.\n",
		.options = OPT_AB | OPT_TIMEOUT, .operands = OPERANDS_PATHS, .max_args = INT_MAX,
		.run = cmd_ab, .print = print_ab,
	}, {
		.name = "load", .args = "[--allow-untested] [NAME=VALUE...]",
		.summary = "load the module, with every path off",
		.details = "\n"
			   "  --allow-untested  let paths be enabled on an untested kernel\n"
			   "  NAME=VALUE        a module parameter, such as enable=madvise\n",
		.options = OPT_ALLOW_UNTESTED,
		.operands = OPERANDS_PARAMETERS, .max_args = INT_MAX,
		.run = cmd_load, .print = print_load,
	}, {
		.name = "unload", .args = "[--timeout SECONDS]",
		.summary = "disable every path and remove the module",
		.details = "\n  --timeout SECONDS  how long to wait for calls under way (60)\n"
			   "\nWhat is on is put back if they do not end in that time.\n",
		.options = OPT_TIMEOUT, .run = cmd_unload, .print = print_unload,
	}, {
		.name = "status", .args = "",
		.summary = "show the state of every path",
		.details = "",
		.run = cmd_status, .print = print_status,
	}, {
		.name = "enable", .args = "[--timeout SECONDS] PATH...|all",
		.summary = "switch paths on",
		.details = "\n  all  every path that is available; the others are skipped\n",
		.options = OPT_TIMEOUT, .operands = OPERANDS_PATHS_OR_ALL, .max_args = INT_MAX,
		.run = cmd_enable, .print = print_toggle,
	}, {
		.name = "disable", .args = "[--timeout SECONDS] PATH...|all",
		.summary = "switch paths off",
		.details = "\nReturns when no call is left in the path.\n"
			   "\n  --timeout SECONDS  how long to wait for that (60)\n",
		.options = OPT_TIMEOUT, .operands = OPERANDS_PATHS_OR_ALL, .max_args = INT_MAX,
		.run = cmd_disable, .print = print_toggle,
	}, {
		.name = "apply", .args = "[--check] [--timeout SECONDS] [FILE]",
		.summary = "make the paths as a configuration file says",
		.details = "\n  FILE               instead of /etc/mmopt.conf\n"
			   "  --check            only tell whether the file is right\n"
			   "  --timeout SECONDS  how long to wait for calls under way (60)\n",
		.options = OPT_CHECK | OPT_TIMEOUT, .operands = OPERANDS_FILE, .max_args = 1,
		.run = cmd_apply, .print = print_apply,
	}, {
		.name = "stats", .args = "[PATH...]",
		.summary = "show what the paths have counted and timed",
		.details = "\nHalf of the calls took less than 'p50 below'.\n",
		.operands = OPERANDS_PATHS, .max_args = INT_MAX,
		.run = cmd_stats, .print = print_stats,
	}, {
		.name = "watch", .args = "[INTERVAL [COUNT]]",
		.summary = "show what the paths do, again and again",
		.details = "\n"
			   "  INTERVAL  seconds, 0.1 to 86400 (1)\n"
			   "  COUNT     how many intervals (until interrupted)\n"
			   "\nRates are per second. With -j, there is an object for each interval.\n",
		.max_args = 2, .run = cmd_watch, .print = print_watch,
	}, {
		.name = "trace", .args = "[PATH...]",
		.summary = "show each switch, fallback and trip as it happens",
		.details = "\nEnds when interrupted. Other tracers are not disturbed.\n",
		.operands = OPERANDS_PATHS, .max_args = INT_MAX,
		.run = cmd_trace, .print = print_trace,
	}, {
		.name = "explain", .args = "[PATH...]",
		.summary = "tell what the paths change in this kernel, and how",
		.details = "",
		.operands = OPERANDS_PATHS, .max_args = INT_MAX,
		.run = cmd_explain, .print = print_explain,
	}, {
		.name = "export", .args = "--prometheus [--output FILE]",
		.summary = "write the statistics for a monitoring system",
		.details = "\n"
			   "  --prometheus   in the text format of Prometheus\n"
			   "  --output FILE  replace FILE, whole or not at all, instead of stdout\n",
		.options = OPT_PROMETHEUS | OPT_OUTPUT,
		.run = cmd_export, .print = print_export,
	}, {
		.name = "check", .args = "",
		.summary = "tell whether this host fits, before anything is loaded",
		.details = "\nExits with 0 if it fits and with 1 if there is a problem.\n",
		.run = cmd_check, .print = print_check,
	}, {
		.name = "help", .args = "[COMMAND]",
		.summary = "explain a command",
		.details = "",
		.operands = OPERANDS_COMMAND, .max_args = 1, .run = cmd_help, .print = print_help,
	}, {
		.name = "version", .args = "",
		.summary = "show the versions of this tool and of the module",
		.details = "",
		.run = cmd_version, .print = print_version,
	}, {
		.name = "__complete", .args = "WORD...",
		.summary = "what may stand for the last word, for shells",
		.details = "", .hidden = true,
		.max_args = INT_MAX, .run = cmd_complete, .print = print_complete,
	},
};

const size_t commands_count = ARRAY_SIZE(commands);

const struct option_info options[] = {
	{ "json", 'j', NULL },
	{ "pretty", 'p', NULL },
	{ "help", 'h', NULL },
	{ "version", 'V', NULL },
	{ "allow-untested", OPT_ALLOW_UNTESTED, NULL },
	{ "timeout", OPT_TIMEOUT, "SECONDS" },
	{ "prometheus", OPT_PROMETHEUS, NULL },
	{ "output", OPT_OUTPUT, "FILE" },
	{ "check", OPT_CHECK, NULL },
	{ "seconds", OPT_AB, "N" },
	{ "window", OPT_AB, "S" },
	{ "metric", OPT_AB, "COMMAND" },
	{ "lower-is-better", OPT_AB, NULL },
	{ "higher-is-better", OPT_AB, NULL },
	{ "csv", OPT_AB, "FILE" },
	{ "plot", OPT_AB, "FILE" },
	{ "html", OPT_AB, "FILE" },
	{ "seed", OPT_AB, "N" },
	{ "aa", OPT_AB, NULL },
};

const size_t options_count = ARRAY_SIZE(options);

bool option_fits(const struct option_info *option, const struct command *cmd)
{
	return option->key < OPT_ALLOW_UNTESTED || (cmd && option->key & cmd->options);
}

/*
 * By name or by a prefix that only one name has. @names, which may be NULL, gets
 * all that it may be.
 */
const struct command *command_match(const char *verb, char *names, size_t size)
{
	const struct command *found = NULL;
	size_t len = 0, n = 0;

	for (size_t i = 0; i < commands_count; i++) {
		const struct command *cmd = &commands[i];

		if (!strcmp(cmd->name, verb))
			return cmd;
		if (cmd->hidden || !*verb || strncmp(cmd->name, verb, strlen(verb)))
			continue;
		if (names && len < size)
			len += (size_t)snprintf(names + len, size - len, "%s%s",
						n ? ", " : "", cmd->name);
		n++;
		found = cmd;
	}
	return n == 1 ? found : NULL;
}

/* Says what is wrong if it finds none. */
const struct command *command_find(const char *verb)
{
	char names[256] = "";
	const struct command *found = command_match(verb, names, sizeof(names));

	if (found)
		return found;
	if (*names) {
		fail(RC_USAGE, 0, verb, "ambiguous command");
		fail_info("it may be any of %s", names);
	} else {
		fail(RC_USAGE, 0, verb, "unknown command");
		fail_info("'mmopt help' lists them");
	}
	return NULL;
}

static int parse_timeout(const char *text)
{
	unsigned long value;
	char *end;
	int rc;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && !errno && value <= 86400) {
		opts.timeout_s = (unsigned int)value;
		return RC_OK;
	}
	rc = fail(RC_USAGE, 0, "--timeout", "%s is not a number of seconds", text);
	fail_info("give a whole number from 0 to 86400");
	return rc;
}

struct request {
	bool help;
	bool version;
	int used;	/* OPT_* */
};

/* Leaves the words that are no options in @argv, and their number in @argc. */
static int parse_options(struct request *req, int *argc, char **argv)
{
	enum { WORD = 1 };
	struct option longs[ARRAY_SIZE(options) + 1] = { 0 };
	int c, which, words = 0, rc = RC_OK;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		longs[i] = (struct option){
			.name = options[i].name, .val = options[i].key,
			.has_arg = options[i].value ? required_argument : no_argument,
		};
	opterr = 0;
	/* With '-', each word is told where it stands, and what follows "--" is left. */
	while ((c = getopt_long(*argc, argv, "-:jphV", longs, &which)) != -1) {
		if (c >= OPT_ALLOW_UNTESTED)
			req->used |= c;
		switch (c) {
		case WORD:
			argv[words++] = optarg;
			break;
		case 'p':
			opts.pretty = true;
			opts.json = true;
			break;
		case 'j':
			opts.json = true;
			break;
		case 'h':
			req->help = true;
			break;
		case 'V':
			req->version = true;
			break;
		case OPT_ALLOW_UNTESTED:
			opts.allow_untested = true;
			break;
		case OPT_PROMETHEUS:
			opts.prometheus = true;
			break;
		case OPT_OUTPUT:
			opts.output = optarg;
			break;
		case OPT_CHECK:
			opts.check = true;
			break;
		case OPT_TIMEOUT:
			rc = rc_first(rc, parse_timeout(optarg));
			break;
		case OPT_AB:
			rc = rc_first(rc, ab_option(longs[which].name, optarg));
			break;
		default:
			rc = fail(RC_USAGE, 0, argv[optind - 1], c == ':' ?
				  "the option needs a value" : "unknown or ambiguous option");
			fail_info("see 'mmopt help'");
		}
	}
	opts.after_dashes = *argc > optind ? *argc - optind : 0;
	memmove(argv + words, argv + optind, (size_t)opts.after_dashes * sizeof(*argv));
	*argc = words + opts.after_dashes;
	argv[*argc] = NULL;
	return rc;
}

static int refuse_extra(const struct command *cmd, const struct request *req, int argc, char **argv)
{
	int rc = RC_OK;

	if (req->used & ~cmd->options) {
		rc = fail(RC_USAGE, 0, cmd->name, "an option of another command was given");
		fail_info("see 'mmopt help %s'", cmd->name);
	} else if (argc > cmd->max_args) {
		rc = fail(RC_USAGE, 0, cmd->name, "unexpected argument %s", argv[cmd->max_args]);
		fail_info("see 'mmopt help %s'", cmd->name);
	}
	return rc;
}

static const struct command *choose(struct request *req, int *argc, char ***argv)
{
	const struct command *cmd = NULL;

	if (req->version)
		return command_find("version");
	if (!*argc && req->help)
		return command_find("help");
	if (!*argc) {
		fail(RC_USAGE, 0, "mmopt", "no command given");
		fail_info("'mmopt help' lists them");
		return NULL;
	}
	/* "mmopt stats --help" is "mmopt help stats" */
	if (req->help) {
		*argc = 1;
		return command_find("help");
	}
	cmd = command_find(**argv);
	++*argv;
	--*argc;
	return cmd;
}

int main(int argc, char **argv)
{
	const struct command *cmd = NULL;
	struct request req = { 0 };
	int rc;

	rc = parse_options(&req, &argc, argv);
	rc = rc_first(rc, file_init());
	if (!rc) {
		cmd = choose(&req, &argc, &argv);
		rc = cmd ? RC_OK : RC_USAGE;
	}
	if (!rc && !req.help && !req.version)
		rc = refuse_extra(cmd, &req, argc, argv);
	if (!rc)
		rc = cmd->run(out_doc(), req.version ? 0 : argc, argv);
	return out_finish(cmd, rc);
}
