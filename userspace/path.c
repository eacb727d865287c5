// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mmopt.h"

static char dir[PATH_MAX];

/* Where the module's files are; only after control_find() has found them. */
const char *control_dir(void)
{
	return dir;
}

/*
 * Three different things look alike from a distance: no module, no debugfs,
 * and a debugfs that is closed to this user.
 */
enum control control_find(void)
{
	char mount[PATH_MAX / 2], path[PATH_MAX];
	struct stat st;
	int ret;

	if (!module_loaded(MODULE))
		return CONTROL_NOT_LOADED;
	ret = host_debugfs(mount, sizeof(mount));
	if (ret)
		return CONTROL_NO_DEBUGFS;
	snprintf(dir, sizeof(dir), "%s/" MMOPT_DIR, mount);
	if (!stat(file_path(path, "%s/" MMOPT_FILE_STATUS, dir), &st))
		return CONTROL_OK;
	return errno == EACCES || errno == EPERM ? CONTROL_DENIED : CONTROL_ABSENT;
}

/* Has the module gone, or begun to, since control_open()? */
bool control_gone(void)
{
	return !module_loaded(MODULE) || !file_exists("%s/" MMOPT_FILE_STATUS, dir);
}

int control_lost(void)
{
	int rc;

	fail_forget();
	rc = fail(RC_NOT_LOADED, 0, MODULE, "the module was unloaded meanwhile");
	fail_info("run 'mmopt load' as root, and start again");
	return rc;
}

static int not_loaded(void)
{
	int rc = fail(RC_NOT_LOADED, 0, MODULE, "the module is not loaded");

	if (module_fit(fail_info) == MODULE_FITS)
		fail_info("run 'mmopt load' as root");
	return rc;
}

int control_open(void)
{
	int rc;

	switch (control_find()) {
	case CONTROL_OK:
		return RC_OK;
	case CONTROL_NOT_LOADED:
		return not_loaded();
	case CONTROL_NO_DEBUGFS:
		rc = fail(RC_NO_DEBUGFS, 0, "debugfs", "not mounted, though the module is loaded");
		fail_info("run 'mount -t debugfs none /sys/kernel/debug' as root");
		return rc;
	case CONTROL_DENIED:
		rc = fail(RC_DENIED, EACCES, dir, "cannot be read");
		fail_info("run mmopt as root");
		return rc;
	case CONTROL_ABSENT:
		break;
	}
	rc = fail(RC_FAILED, 0, dir, "the module is loaded, but its files are not here");
	if (host_cmdline_has("nommopt"))
		fail_info("'nommopt' on the kernel command line keeps it inert: boot without");
	else
		fail_info("look for 'mmopt' in the kernel log (dmesg)");
	return rc;
}

/*
 * "mmopt ab" switches paths by turns, and would take what others switch for how it found
 * the host: it locks the folder of the switches for itself (LOCK_EX), whoever else switches
 * shares it (LOCK_SH). The lock goes with us, however we end. Returns false if it is taken.
 */
bool control_lock(int how)
{
	int fd = file_open("%s", dir);

	return fd < 0 || !flock(fd, how | LOCK_NB) || errno != EWOULDBLOCK;
}

int control_busy(const char *who)
{
	int rc = fail(RC_FAILED, EBUSY, "ab", "%s is at work", who);

	fail_info("nothing was done; wait for it, or end it");
	return rc;
}

const char *path_summary(const char *name)
{
	static const char *const known[][2] = {
#define X(id, summary) { #id, summary },
		MMOPT_PATHS(X)
#undef X
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(name, known[i][0]))
			return known[i][1];
	return "";
}

/* Names end up in file names: nothing but letters, digits and underscores. */
static bool valid_name(const char *name)
{
	return *name && !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")];
}

/* "state[ flag...][: reason]" */
static bool parse_state(struct path *path, char *text)
{
	char *reason = strchr(text, ':'), *save, *word;

	path->reason[0] = '\0';
	if (reason) {
		*reason++ = '\0';
		reason += strspn(reason, " ");
		snprintf(path->reason, sizeof(path->reason), "%s", reason);
	}
	word = strtok_r(text, " ", &save);
	if (!word || !valid_name(word))
		return false;
	snprintf(path->state, sizeof(path->state), "%s", word);
	while ((word = strtok_r(NULL, " ", &save)))
		if (!strcmp(word, "untested"))
			path->untested = true;
	return true;
}

static bool parse_line(struct path *path, char *line)
{
	char *rest = strchr(line, ' ');

	if (!rest)
		return false;
	*rest++ = '\0';
	if (!valid_name(line))
		return false;
	memset(path, 0, sizeof(*path));
	snprintf(path->name, sizeof(path->name), "%s", line);
	return parse_state(path, rest);
}

/* What the module says of its paths, in its order. Only reads what is 0444. */
int paths_read(struct path_list *list)
{
	char *text = file_slurp("%s/" MMOPT_FILE_STATUS, dir), *save, *line;
	unsigned int number = 0;
	int rc = RC_OK;

	memset(list, 0, sizeof(*list));
	if (!text) {
		rc = fail(errno == EACCES || errno == EPERM ? RC_DENIED : RC_FAILED, errno, dir,
			  "cannot read " MMOPT_FILE_STATUS);
		fail_info("run mmopt as root, and see the kernel log (dmesg)");
		return rc;
	}
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct path *v = reallocarray(list->v, list->n + 1, sizeof(*v));

		number++;
		if (!v)
			abort();
		list->v = v;
		if (parse_line(&v[list->n], line)) {
			list->n++;
			continue;
		}
		rc = fail(RC_FAILED, 0, dir,
			  MMOPT_FILE_STATUS " line %u is not '<path> <state>'", number);
		fail_info(VERSIONS_DIFFER);
		break;
	}
	free(text);
	return rc;
}

void paths_free(struct path_list *list)
{
	free(list->v);
	memset(list, 0, sizeof(*list));
}

struct path *paths_find(const struct path_list *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (!strcmp(list->v[i].name, name))
			return &list->v[i];
	return NULL;
}

/* All names or nothing: nobody wants half of a mistyped command done. */
int paths_check_names(const struct path_list *list, int argc, char **argv)
{
	char known[512] = "";
	int rc = RC_OK;

	for (size_t i = 0, len = 0; i < list->n && len < sizeof(known); i++)
		len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s",
					i ? ", " : "", list->v[i].name);
	for (int i = 0; i < argc; i++) {
		if (paths_find(list, argv[i]))
			continue;
		rc = fail(RC_USAGE, 0, argv[i], "no such path, nothing was done");
		fail_info("the paths are: %s", known);
	}
	return rc;
}

/* The paths of these names, or all without any. @list can be freed in any case. */
int paths_named(struct path_list *list, int argc, char **argv)
{
	size_t n = 0;
	int rc;

	memset(list, 0, sizeof(*list));
	rc = control_open();
	if (!rc)
		rc = paths_read(list);
	if (!rc)
		rc = paths_check_names(list, argc, argv);
	for (size_t i = 0; !rc && i < list->n; i++) {
		bool wanted = !argc;

		for (int j = 0; j < argc; j++)
			wanted |= !strcmp(argv[j], list->v[i].name);
		if (wanted)
			list->v[n++] = list->v[i];
	}
	list->n = rc ? list->n : n;
	return rc;
}

/* Reads the state of one path anew. Returns 0 or a negative errno. */
int path_state(struct path *path)
{
	char line[sizeof(path->state) + sizeof(path->reason)];
	int ret = file_line(line, sizeof(line), "%s/%s/" MMOPT_FILE_STATE, dir, path->name);

	if (!ret && !parse_state(path, line))
		ret = -EPROTO;
	return ret;
}
