// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mmopt.h"

#define REBUILD \
	"build it again: 'dkms install " MODULE "/%s -k %s --force' (dmesg names the mismatch)"

static bool has_param(const struct module_info *info, const char *arg)
{
	size_t i, len = strcspn(arg, "="), n = json_object_array_length(info->params);

	for (i = 0; i < n; i++) {
		struct json_object *param = json_object_array_get_idx(info->params, i);
		const char *name = json_object_get_string(param);

		if (strlen(name) == len && !strncmp(name, arg, len))
			return true;
	}
	return false;
}

/*
 * The kernel only logs a parameter that it does not know; somebody who
 * mistyped one wants to hear of it.
 */
static int join_params(char *params, size_t size, int argc, char **argv)
{
	size_t len = 0;

	params[0] = '\0';
	if (opts.allow_untested)
		len = (size_t)snprintf(params, size, "allow_untested=1");
	for (int i = 0; i < argc; i++) {
		int rc = RC_OK;

		if (!argv[i][0] || strpbrk(argv[i], " \t\n\"")) {
			rc = fail(RC_USAGE, 0, argv[i], "not a parameter");
			fail_info("write NAME=VALUE, without blanks and quotes");
			return rc;
		}
		len += (size_t)snprintf(params + len, size - len, "%s%s", len ? " " : "", argv[i]);
		if (len >= size)
			return fail(RC_USAGE, E2BIG, "load", "too many parameters");
	}
	return RC_OK;
}

static int check_params(const struct module_info *info, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (!has_param(info, argv[i])) {
			int rc = fail(RC_USAGE, 0, argv[i], "the module has no such parameter");

			fail_info("'modinfo -p " MODULE "' lists them");
			return rc;
		}
	}
	return RC_OK;
}

static int not_permitted(void)
{
	bool locked = !geteuid() && host_locked_down();
	int rc = fail(locked ? RC_LOCKDOWN : RC_DENIED, EPERM, "load",
		      "the kernel does not take the module%s%s",
		      locked ? ", lockdown is " : "", locked ? host_lockdown() : "");
	char disabled[8];

	if (geteuid())
		fail_info("run mmopt as root");
	else if (locked)
		module_key_advice(fail_info);
	else if (!file_line(disabled, sizeof(disabled), "/proc/sys/kernel/modules_disabled") &&
		 disabled[0] == '1')
		fail_info("kernel.modules_disabled is 1: boot anew to load modules");
	else
		fail_info("CAP_SYS_MODULE is missing: run it on the host, not in a container");
	return rc;
}

static int load_failed(int err)
{
	const char *release = host_release();
	int rc;

	switch (err) {
	case EPERM:
	case EACCES:
		return not_permitted();
	case EKEYREJECTED:
	case ENOKEY:
	case EBADMSG:
	case ENOPKG:
		rc = fail(RC_KEY, err, "load", "the kernel rejects the module's signature");
		module_key_advice(fail_info);
		return rc;
	case ENOEXEC:
	case ENOENT:
		rc = fail(RC_NOT_BUILT, err, "load",
			  "the module was not built for kernel %s, or is damaged", release);
		fail_info(REBUILD, MMOPT_VERSION, release);
		return rc;
	case EINVAL:
		rc = fail(RC_FAILED, err, "load", "the kernel rejects a parameter, or the module");
		break;
	default:
		rc = fail(RC_FAILED, err, "load", "the module could not be loaded");
	}
	fail_info("see the kernel log (dmesg)");
	return rc;
}

/* With parameters; the module must not be loaded. */
int load_module(int argc, char **argv)
{
	struct module_info info;
	char params[1024];
	int ret, rc;

	rc = join_params(params, sizeof(params), argc, argv);
	if (rc)
		return rc;
	ret = module_find(&info);
	if (!ret)
		rc = check_params(&info, argc, argv);
	module_info_free(&info);
	if (rc)
		return rc;
	if (ret) {
		rc = fail(RC_NOT_BUILT, -ret, "load", "there is no module to load");
		module_fit(fail_info);
		return rc;
	}
	ret = module_insert(MODULE, params);
	return ret ? load_failed(ret < 0 ? -ret : EPERM) : RC_OK;
}

int cmd_load(struct json_object *doc, int argc, char **argv)
{
	bool already = module_loaded(MODULE);
	char version[64];
	int rc;

	if (!already) {
		rc = load_module(argc, argv);
		if (rc)
			return rc;
	} else if (argc || opts.allow_untested) {
		out_warn("load", "the parameters were not used: unload the module first");
	}
	if (host_cmdline_has("nommopt"))
		out_warn("load", "inert, as 'nommopt' is on the kernel command line");
	file_line(version, sizeof(version), "/sys/module/" MODULE "/version");
	json_set_bool(doc, "already", already);
	json_set(doc, "version", "%s", version);
	return RC_OK;
}

void print_load(struct json_object *doc)
{
	const char *version = json_str(doc, "version");

	printf("mmopt%s%s is loaded%s\n", *version ? " " : "", version,
	       json_flag(doc, "already") ? ", and was before" : "");
}
