// SPDX-License-Identifier: GPL-2.0
/* What the machine's owner has forbidden. */
#include "mmopt.h"

static void check_lockdown(void)
{
	const char *level = host_lockdown();

	if (!*level) {
		check_item(CHECK_OK, "lockdown", "not known to this kernel");
	} else if (!host_locked_down()) {
		check_item(CHECK_OK, "lockdown", "none");
	} else {
		check_item(CHECK_NOTE, "lockdown", "%s: the switches in debugfs are closed", level);
		check_info("mmopt then uses the module parameter 'enable', and the module must be signed");
	}
}

static void check_signature(void)
{
	struct module_info info;
	bool found, enforced = host_sig_enforce() || host_locked_down();

	if (!enforced) {
		check_item(CHECK_OK, "module signature", "not enforced");
		return;
	}
	found = !module_find(&info);
	if (found && info.is_signed) {
		check_item(CHECK_NOTE, "module signature", "enforced, and the module is signed");
		check_info("its key must be enrolled: 'mokutil --test-key /var/lib/dkms/mok.pub' tells");
	} else {
		check_item(CHECK_PROBLEM, "module signature", found ?
			   "enforced, and the module is not signed" : "enforced");
		module_key_advice(check_info);
	}
	module_info_free(&info);
}

void check_policy(void)
{
	int secure_boot = host_secure_boot();

	check_item(CHECK_OK, "Secure Boot", "%s", secure_boot < 0 ? "not there" :
		   secure_boot ? "on" : "off");
	check_lockdown();
	check_signature();
	if (host_cmdline_has("nommopt")) {
		check_item(CHECK_PROBLEM, "kernel command line", "'nommopt': the module is inert");
		check_info("boot without it");
	} else {
		check_item(CHECK_OK, "kernel command line", "no 'nommopt'");
	}
}
