// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <libkmod.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mmopt.h"

#define REMOVE_TRIES_MS		3000

/* Our own messages say more than the library's. */
static void no_log(void *data, int priority, const char *file, int line,
		   const char *fn, const char *format, va_list args)
{
	(void)data; (void)priority; (void)file; (void)line;
	(void)fn; (void)format; (void)args;
}

static struct kmod_ctx *kmod_open(void)
{
	static const char *const config[] = {
		"/etc/modprobe.d", "/run/modprobe.d",
		"/usr/local/lib/modprobe.d", "/lib/modprobe.d",
	};
	char dir[PATH_MAX], paths[ARRAY_SIZE(config)][PATH_MAX];
	const char *list[ARRAY_SIZE(config) + 1] = { NULL };
	struct kmod_ctx *ctx;

	for (size_t i = 0; i < ARRAY_SIZE(config); i++)
		list[i] = file_path(paths[i], "%s", config[i]);
	ctx = kmod_new(file_path(dir, "/lib/modules/%s", host_release()), list);
	if (ctx)
		kmod_set_log_fn(ctx, no_log, NULL);
	return ctx;
}

bool module_loaded(const char *name)
{
	return file_exists("/sys/module/%s", name);
}

/* "name:type" or "name:description"; a parameter may lack either line. */
static void add_param(struct json_object *params, const char *value)
{
	int len = (int)strcspn(value, ":");

	json_object_array_add(params, json_object_new_string_len(value, len));
}

static void read_info(struct module_info *info, struct kmod_list *list)
{
	struct kmod_list *entry;

	kmod_list_foreach(entry, list) {
		const char *key = kmod_module_info_get_key(entry);
		const char *value = kmod_module_info_get_value(entry);

		if (!strcmp(key, "version"))
			snprintf(info->version, sizeof(info->version), "%s", value);
		else if (!strcmp(key, "vermagic"))
			snprintf(info->release, sizeof(info->release), "%.*s",
				 (int)strcspn(value, " "), value);
		else if (!strcmp(key, "parm") || !strcmp(key, "parmtype"))
			add_param(info->params, value);
		else if (!strcmp(key, "signer") || !strcmp(key, "sig_id"))
			info->is_signed = true;
	}
}

/* Looks for the module file of the running kernel. Returns 0 or a negative errno. */
int module_find(struct module_info *info)
{
	struct kmod_list *found = NULL, *details = NULL;
	struct kmod_module *mod = NULL;
	struct kmod_ctx *ctx = kmod_open();
	const char *file;
	int ret = -ENOENT;

	memset(info, 0, sizeof(*info));
	info->params = json_object_new_array();
	if (!ctx)
		return -ENOMEM;
	if (kmod_module_new_from_lookup(ctx, MODULE, &found) < 0 || !found)
		goto out;
	mod = kmod_module_get_module(found);
	file = kmod_module_get_path(mod);
	if (!file)
		goto out;
	snprintf(info->file, sizeof(info->file), "%s", file);
	ret = kmod_module_get_info(mod, &details);
	if (ret >= 0) {
		read_info(info, details);
		ret = 0;
	}
out:
	kmod_module_info_free_list(details);
	kmod_module_unref(mod);
	kmod_module_unref_list(found);
	kmod_unref(ctx);
	return ret;
}

void module_info_free(struct module_info *info)
{
	json_object_put(info->params);
	info->params = NULL;
}

/* DKMS keeps a folder for each version that is registered with it. */
static bool dkms_registered(void)
{
	return file_exists("/var/lib/dkms/" MODULE);
}

void module_key_advice(say_fn say_info)
{
	say_info("only modules signed with a trusted key load here: enrol the key of DKMS with 'mokutil --import /var/lib/dkms/mok.pub', reboot, and confirm it at the console; 'dkms autoinstall --force' signs anew");
}

static void missing_advice(say_fn say_info)
{
	const char *release = host_release();

	if (!host_headers())
		say_info("the headers to build the module for kernel %s are missing: 'apt install %s' (linux-headers-%s if this kernel is not the newest); DKMS then builds it, see 'dkms status'",
			 release, host_headers_package(), release);
	else if (dkms_registered())
		say_info("DKMS has not built the module for kernel %s: 'dkms autoinstall -k %s'; see 'dkms status' and make.log below /var/lib/dkms/mmopt",
			 release, release);
	else
		say_info("there is no module for kernel %s: install mmopt with DKMS first, see 'dkms status'",
			 release);
}

/* Would the kernel take the module that is installed? Tells what to do if not. */
enum module_fit module_fit(say_fn say_info)
{
	const char *release = host_release();
	enum module_fit fit = MODULE_FITS;
	struct module_info info;
	int ret = module_find(&info);

	if (ret == -ENOENT) {
		fit = MODULE_MISSING;
		missing_advice(say_info);
	} else if (ret) {
		fit = MODULE_MISSING;
		say_info("%s cannot be read (%s): 'dkms autoinstall -k %s --force' builds it anew",
			 info.file, strerror(-ret), release);
	} else if (info.release[0] && strcmp(info.release, release)) {
		fit = MODULE_OTHER_KERNEL;
		say_info("%s is for kernel %s: 'dkms autoinstall -k %s --force' builds it anew",
			 info.file, info.release, release);
	} else if (!info.is_signed && (host_sig_enforce() || host_locked_down())) {
		fit = MODULE_UNSIGNED;
		module_key_advice(say_info);
	}
	module_info_free(&info);
	return fit;
}

/* With its dependencies and the options of modprobe.d. Returns 0 or a negative errno. */
int module_insert(const char *name, const char *params)
{
	struct kmod_ctx *ctx = kmod_open();
	struct kmod_list *found = NULL;
	struct kmod_module *mod = NULL;
	int ret;

	if (!ctx)
		return -ENOMEM;
	ret = kmod_module_new_from_lookup(ctx, name, &found);
	if (!ret && !found)
		ret = -ENOENT;
	if (!ret) {
		mod = kmod_module_get_module(found);
		ret = kmod_module_probe_insert_module(mod, 0, params, NULL, NULL, NULL);
	}
	kmod_module_unref(mod);
	kmod_module_unref_list(found);
	kmod_unref(ctx);
	return ret;
}

/*
 * A reader of a file in debugfs may hold the module for a moment: try again
 * before giving up.
 */
int module_remove(const char *name)
{
	__u64 deadline = now_ms() + REMOVE_TRIES_MS;
	struct kmod_ctx *ctx = kmod_open();
	struct kmod_module *mod = NULL;
	int ret;

	if (!ctx)
		return -ENOMEM;
	ret = kmod_module_new_from_name(ctx, name, &mod);
	if (!ret) {
		do {
			ret = kmod_module_remove_module(mod, 0);
			if (ret != -EAGAIN && ret != -EBUSY)
				break;
			nap_ms(50);
		} while (!interrupted && now_ms() < deadline);
	}
	kmod_module_unref(mod);
	kmod_unref(ctx);
	return ret;
}
