/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MMOPT_H
#define MMOPT_H

#include <dirent.h>
#include <json-c/json.h>
#include <limits.h>
#include <linux/types.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <mmopt/abi.h>

#include "compiler.h"

#define MODULE			"mmopt"

/* Exit codes, part of the interface: see docs/errors.md. */
enum rc {
	RC_OK,
	RC_FAILED,		/* none of those below */
	RC_USAGE,
	RC_NOT_LOADED,
	RC_DENIED,		/* not root */
	RC_LOCKDOWN,
	RC_KEY,			/* the module's signature is rejected */
	RC_NOT_BUILT,		/* for this kernel */
	RC_NO_DEBUGFS,
	RC_UNAVAILABLE,		/* the path */
	RC_OWNED,		/* by another livepatch or probe */
	RC_STALLED,		/* calls are still under way */
};

/* main.c */
struct options {
	bool json;
	bool pretty;
	bool allow_untested;
	bool prometheus;
	bool check;
	unsigned int timeout_s;
	const char *output;
	int after_dashes;	/* how many of the arguments follow "--" */
};

/* Options that only some verbs take; no letter, so that each can stand for itself. */
#define OPT_ALLOW_UNTESTED	0x100
#define OPT_TIMEOUT		0x200
#define OPT_PROMETHEUS		0x400
#define OPT_OUTPUT		0x800
#define OPT_CHECK		0x1000
#define OPT_AB			0x2000	/* any of those that ab alone takes */

struct option_info {
	const char *name;
	int key;		/* letter or OPT_* */
	const char *value;	/* NULL if it takes none */
};

/* What may follow a verb, for completions. */
enum operands {
	OPERANDS_NONE,
	OPERANDS_PATHS,
	OPERANDS_PATHS_OR_ALL,
	OPERANDS_COMMAND,
	OPERANDS_PARAMETERS,
	OPERANDS_FILE,
};

/*
 * run() fills @doc, the one source of both forms of output: it is printed as
 * it is with --json and handed to print() without.
 */
struct command {
	const char *name;
	const char *args;
	const char *summary;
	const char *details;
	int options;
	enum operands operands;
	int max_args;
	bool hidden;
	int (*run)(struct json_object *doc, int argc, char **argv);
	void (*print)(struct json_object *doc);
};

extern struct options opts;
extern const struct command commands[];
extern const size_t commands_count;
extern const struct option_info options[];
extern const size_t options_count;

const struct command *command_match(const char *verb, char *names, size_t size);
const struct command *command_find(const char *verb);
bool option_fits(const struct option_info *option, const struct command *cmd);

#define VERSIONS_DIFFER \
	"the module and this tool may be of different versions: see 'mmopt version'"

/* out.c: what a verb has to say */
typedef void (*say_fn)(const char *fmt, ...);

int fail(int rc, int err, const char *where, const char *fmt, ...) __printf(4, 5);
void fail_info(const char *fmt, ...) __printf(1, 2);
void fail_forget(void);
void out_warn(const char *where, const char *fmt, ...) __printf(2, 3);
void progress(const char *fmt, ...) __printf(1, 2);
int rc_first(int a, int b);

struct json_object *out_doc(void);
int out_now(struct json_object *obj, void (*print)(struct json_object *obj));
int out_finish(const struct command *cmd, int rc);

struct json_object *json_new_str(const char *text);
void json_set(struct json_object *obj, const char *key, const char *fmt, ...) __printf(3, 4);
void json_set_bool(struct json_object *obj, const char *key, bool value);
void json_set_double(struct json_object *obj, const char *key, double value);
void json_set_u64(struct json_object *obj, const char *key, __u64 value);
const char *json_str(struct json_object *obj, const char *key);
double json_double(struct json_object *obj, const char *key);
__u64 json_u64(struct json_object *obj, const char *key);
bool json_flag(struct json_object *obj, const char *key);
struct json_object *json_array(struct json_object *obj, const char *key);

/* file.c: every access to the host's files goes through here */
int file_init(void);
char *file_path(char *buf, const char *fmt, ...) __printf(2, 3);
bool file_exists(const char *fmt, ...) __printf(1, 2);
char *file_slurp(const char *fmt, ...) __printf(1, 2);
char *file_slurp_named(const char *name);
int file_line(char *buf, size_t size, const char *fmt, ...) __printf(3, 4);
int file_replace(const char *name, const char *text);
int file_write(const char *text, const char *fmt, ...) __printf(2, 3);
int file_open(const char *fmt, ...) __printf(1, 2);
int dir_make(const char *fmt, ...) __printf(1, 2);
int dir_remove(const char *fmt, ...) __printf(1, 2);
int dir_list(struct dirent ***list, const char *fmt, ...) __printf(2, 3);
void dir_free(struct dirent **list, int n);

/* host.c: facts about the running kernel */
const char *host_release(void);
const char *host_machine(void);
bool host_cmdline_has(const char *word);
const char *host_lockdown(void);
bool host_locked_down(void);
bool host_sig_enforce(void);
int host_secure_boot(void);
bool host_headers(void);
const char *host_headers_package(void);
int host_debugfs(char *mount, size_t size);
int host_tracefs(char *mount, size_t size);

/* wait.c */
extern atomic_int interrupted;

void catch_signals(void);
void timer_start(unsigned int seconds);
void timer_stop(void);
__u64 now_ms(void);
void nap_ms(unsigned int ms);
bool wait_for(__u64 until_ms, int fd, int *rc);

/* module.c: libkmod */
struct module_info {
	char file[PATH_MAX];
	char version[64];
	char release[128];
	bool is_signed;
	struct json_object *params;
};

enum module_fit {
	MODULE_FITS,
	MODULE_MISSING,
	MODULE_OTHER_KERNEL,
	MODULE_UNSIGNED,
};

bool module_loaded(const char *name);
int module_find(struct module_info *info);
void module_info_free(struct module_info *info);
enum module_fit module_fit(say_fn say_info);
void module_key_advice(say_fn say_info);
int module_insert(const char *name, const char *params);
int module_remove(const char *name);

/* path.c: the paths of a loaded module */
struct path {
	char name[64];
	char state[64];
	bool untested;
	bool was_on;
	bool was_observed;
	char reason[512];
};

struct path_list {
	struct path *v;
	size_t n;
};

enum control {
	CONTROL_OK,
	CONTROL_NOT_LOADED,
	CONTROL_NO_DEBUGFS,
	CONTROL_DENIED,
	CONTROL_ABSENT,
};

enum control control_find(void);
int control_open(void);
bool control_lock(int how);
int control_busy(const char *who);
const char *control_dir(void);
int paths_read(struct path_list *list);
void paths_free(struct path_list *list);
struct path *paths_find(const struct path_list *list, const char *name);
int paths_check_names(const struct path_list *list, int argc, char **argv);
bool control_gone(void);
int control_lost(void);
int paths_named(struct path_list *list, int argc, char **argv);
const char *path_summary(const char *name);
int path_state(struct path *path);

/* switch.c */
#define PARAM_ENABLE		"/sys/module/" MODULE "/parameters/enable"
#define PARAM_UNTESTED		"/sys/module/" MODULE "/parameters/allow_untested"

int path_switch(const struct path_list *all, struct path *path, bool on, const char **via);
bool path_is(const struct path *path, const char *state);
bool path_held_back(const struct path *path);
bool path_observed(const struct path *path);
int path_observe(struct path *path, bool on);

/* toggle.c */
void toggle_result(struct json_object *results, const struct path *path,
		   const char *result, const char *via);
int not_reached(const struct path *path);

/* load.c */
int load_module(int argc, char **argv);

/* tasks.c: who is inside of the module */
void tasks_inside(struct json_object *tasks);
void tasks_name(char *buf, size_t size, struct json_object *tasks);

/* stats_file.c */
#define HIST_BUCKETS	64

enum hist { HIST_TAKEN, HIST_STOCK, HIST_COUNT };

struct stats_counter {
	const char *key;
	__u64 value;
};

struct stats {
	char *text;
	bool has_version;
	__u64 version;
	struct stats_counter *counters;
	size_t n;
	__u64 hist[HIST_COUNT][HIST_BUCKETS];
	__u64 sum_ns[HIST_COUNT];
};

bool parse_u64(const char *text, __u64 *value);
int stats_read(struct stats *stats, const char *path);
int stats_parse(struct stats *stats, char *text, const char *where);
void stats_free(struct stats *stats);
__u64 hist_total(const __u64 *hist);
__u64 hist_below(const __u64 *hist, unsigned int percent);

/* stats.c */
extern const char *const hist_names[HIST_COUNT];

const char *stats_meaning(const char *path, const char *key);
struct json_object *hist_json(const __u64 *hist);
void format_ns(char *buf, size_t size, __u64 ns);

/* check*.c */
enum verdict { CHECK_OK, CHECK_NOTE, CHECK_PROBLEM };

void check_item(enum verdict verdict, const char *name, const char *fmt, ...) __printf(3, 4);
void check_info(const char *fmt, ...) __printf(1, 2);
void check_kernel(void);
void check_policy(void);
void check_rivals(void);

/* ab_options.c */
int ab_option(const char *name, const char *value);

/* The verbs. */
int cmd_ab(struct json_object *doc, int argc, char **argv);
int cmd_load(struct json_object *doc, int argc, char **argv);
int cmd_unload(struct json_object *doc, int argc, char **argv);
int cmd_status(struct json_object *doc, int argc, char **argv);
int cmd_enable(struct json_object *doc, int argc, char **argv);
int cmd_disable(struct json_object *doc, int argc, char **argv);
int cmd_apply(struct json_object *doc, int argc, char **argv);
int cmd_watch(struct json_object *doc, int argc, char **argv);
int cmd_trace(struct json_object *doc, int argc, char **argv);
int cmd_explain(struct json_object *doc, int argc, char **argv);
int cmd_stats(struct json_object *doc, int argc, char **argv);
int cmd_export(struct json_object *doc, int argc, char **argv);
int cmd_check(struct json_object *doc, int argc, char **argv);
int cmd_complete(struct json_object *doc, int argc, char **argv);
int cmd_help(struct json_object *doc, int argc, char **argv);
int cmd_version(struct json_object *doc, int argc, char **argv);

void print_ab(struct json_object *doc);
void print_load(struct json_object *doc);
void print_unload(struct json_object *doc);
void print_status(struct json_object *doc);
void print_toggle(struct json_object *doc);
void print_apply(struct json_object *doc);
void print_watch(struct json_object *interval);
void print_trace(struct json_object *event);
void print_explain(struct json_object *doc);
void print_stats(struct json_object *doc);
void print_export(struct json_object *doc);
void print_check(struct json_object *doc);
void print_complete(struct json_object *doc);
void print_help(struct json_object *doc);
void print_version(struct json_object *doc);

#endif /* MMOPT_H */
