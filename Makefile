# SPDX-License-Identifier: GPL-2.0
#
# The kernel's own build reads Kbuild; this file is for people.

VERSION   := $(shell sed -n 's/^\#define MMOPT_VERSION[[:space:]]*"\(.*\)"/\1/p' include/mmopt/abi.h)
KERNELVER ?= $(shell uname -r)
KDIR      ?= /lib/modules/$(KERNELVER)/build
PREFIX    ?= /usr/local
DESTDIR   ?=
DKMS_SRC  := $(DESTDIR)/usr/src/mmopt-$(VERSION)
DIST      ?= $(CURDIR)/dist

KERNEL    ?= debian13-backports
PATHS     ?= all
RUNS      ?= 5
OUT       ?= mmopt-ab.json

.PHONY: help
help:
	@echo 'mmopt $(VERSION)'
	@echo
	@echo 'On a host:'
	@echo '  dkms-install   build the module for KERNELVER ($(KERNELVER)) and keep it built, by DKMS'
	@echo '  dkms-remove    remove every version of the module from DKMS'
	@echo '  install        build and install the command line in PREFIX ($(PREFIX)), below DESTDIR'
	@echo '  uninstall      remove the command line'
	@echo '  sign           sign the installed module for Secure Boot: KEY=, CERT='
	@echo '  deb            build the packages mmopt-dkms and mmopt for this Debian, in DIST (dist)'
	@echo '  dist           the source as packaging/mmopt.spec wants it, in DIST'
	@echo
	@echo 'For work on mmopt:'
	@echo '  module         build the module for KERNELVER in this tree'
	@echo '  cli            build the command line'
	@echo '  check          static checks, unit tests and the tests that need no guest'
	@echo '  test           every test, in guests with stock kernels too (sudo tests/run)'
	@echo '  test-debug     the guest tests, on kernels with KASAN, lockdep and the like'
	@echo '  debug-kernel   build such a kernel, if it is not there (20 minutes): KERNEL='
	@echo '  demo           measure mmopt in a guest (sudo tests/demo)'
	@echo '  ab             the A/B measurement alone: KERNEL=, PATHS=, RUNS=, OUT='
	@echo '  shell          a shell in a guest with mmopt installed: KERNEL='
	@echo '  clean          remove what was built'
	@echo
	@echo 'KERNEL is debian12, debian13 or debian13-backports; with kernels for finding'
	@echo 'faults, debian13-debug or debian13-backports-debug.'

.PHONY: module
module:
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

.PHONY: cli
cli:
	$(MAKE) -C userspace all

.PHONY: install
install:
	$(MAKE) -C userspace install PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)

.PHONY: uninstall
uninstall:
	$(MAKE) -C userspace uninstall PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)

# What a build leaves in a tree of the module's source.
clean_copy = find $(1) \( -name '*.o' -o -name '*.ko' -o -name '*.mod*' \
	-o -name '.*.cmd' \) -delete

# A version that DKMS already has is replaced, so that this can be repeated.
.PHONY: dkms-install
dkms-install:
	if dkms status mmopt/$(VERSION) | grep -q .; then \
		dkms remove mmopt/$(VERSION) --all; \
	fi
	rm -rf $(DKMS_SRC)
	install -d $(DKMS_SRC)
	cp -r Kbuild dkms.conf include module $(DKMS_SRC)
	$(call clean_copy,$(DKMS_SRC))
	dkms add mmopt/$(VERSION)
	dkms build mmopt/$(VERSION) -k $(KERNELVER)
	dkms install mmopt/$(VERSION) -k $(KERNELVER)

.PHONY: dkms-remove
dkms-remove:
	dkms status mmopt | sed -n 's,^mmopt[/ ,]*\([0-9][0-9.]*\).*,\1,p' | sort -u | \
	while read -r version; do \
		dkms remove mmopt/$$version --all && \
		rm -rf /usr/src/mmopt-$$version || exit 1; \
	done

# The module as DKMS has installed it, or the one that FILE names.
FILE ?= $(firstword $(wildcard /lib/modules/$(KERNELVER)/updates/dkms/mmopt.ko*))

.PHONY: sign
sign:
	packaging/sign-module $(KDIR)/scripts/sign-file "$(KEY)" "$(CERT)" "$(FILE)"

# What packages are built from; without the tests, which are for a git tree.
DIST_TREE  = $(DIST)/mmopt-$(VERSION)
define dist_tree
	rm -rf $(DIST_TREE)
	install -d $(DIST_TREE)
	cp -r Kbuild LICENSE Makefile README.md debian dkms.conf docs include module \
		packaging userspace $(DIST_TREE)
	$(call clean_copy,$(DIST_TREE)/module)
	$(MAKE) -s -C $(DIST_TREE)/userspace clean
endef

.PHONY: dist
dist:
	$(dist_tree)
	tar -czf $(DIST_TREE).tar.gz -C $(DIST) --owner=0 --group=0 mmopt-$(VERSION)
	rm -rf $(DIST_TREE)

.PHONY: deb
deb:
	$(dist_tree)
	cd $(DIST_TREE) && dpkg-buildpackage -b -us -uc $(DEBFLAGS)
	rm -rf $(DIST_TREE)

.PHONY: check
check:
	tests/run static unit host

.PHONY: test
test:
	tests/run

.PHONY: test-debug
test-debug:
	tests/run guest debian13-debug debian13-backports-debug

.PHONY: debug-kernel
debug-kernel:
	tests/vm/guest prepare $(KERNEL)

.PHONY: demo
demo:
	tests/demo

.PHONY: ab
ab:
	tests/vm/guest run $(KERNEL) --timeout 3600 --get /tmp/ab.json=$(OUT) -- \
		tests/ab/ab-run --paths $(PATHS) --runs $(RUNS) --json /tmp/ab.json

.PHONY: shell
shell:
	tests/vm/guest shell $(KERNEL)

.PHONY: clean
clean:
	$(MAKE) -C userspace clean
	$(MAKE) -C tests/unit clean
	$(MAKE) -C tests/ab clean
	[ ! -d $(KDIR) ] || $(MAKE) -C $(KDIR) M=$(CURDIR) clean
	rm -rf mmopt-demo dist
