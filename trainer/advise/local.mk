# SPDX-License-Identifier: Apache-2.0
# What a configuration will cost: formulas of the strategies; machines, from files that are measured or shipped.
libtrainer_la_SOURCES += trainer/advise/advise.c trainer/advise/strategy_costs.c trainer/advise/advise.def trainer/advise/advise.h \
	trainer/advise/hardware.c trainer/advise/hardware.h \
	trainer/advise/plan_search.c trainer/advise/plan_search.h \
	trainer/advise/plan_map.c trainer/advise/plan_map.h \
	trainer/advise/replicated_cost.c trainer/advise/fsdp_cost.c trainer/advise/pdp_cost.c
hardware_files = schema/hardware/a100-40gb-x8.json schema/hardware/a100-80gb-x8.json schema/hardware/b200-x8.json schema/hardware/epyc-7763-x2.json \
	schema/hardware/epyc-9654-x2.json schema/hardware/h100-x8.json schema/hardware/h200-x8.json schema/hardware/l4-x8.json \
	schema/hardware/l40s-x8.json schema/hardware/t4-x4.json schema/hardware/v100-32gb-x8.json schema/hardware/xeon-8380-x2.json \
	schema/hardware/xeon-8480-x2.json
price_files = schema/hardware/prices.json
EXTRA_DIST += $(hardware_files) $(price_files) schema/hardware/hardware.schema.json schema/hardware/prices.schema.json schema/gen/shipped.awk
$(libtrainer_la_OBJECTS): trainer/advise/shipped.def trainer/advise/prices.def
CLEANFILES += trainer/advise/shipped.def trainer/advise/prices.def
trainer/advise/shipped.def: $(hardware_files) schema/gen/shipped.awk
	$(AM_V_GEN)$(MKDIR_P) trainer/advise && $(AWK) -f '$(srcdir)/schema/gen/shipped.awk' \
		`for f in $(hardware_files); do echo '$(srcdir)/'$$f; done` > $@.tmp && mv $@.tmp $@
trainer/advise/prices.def: $(price_files) schema/gen/shipped.awk
	$(AM_V_GEN)$(MKDIR_P) trainer/advise && $(AWK) -f '$(srcdir)/schema/gen/shipped.awk' \
		'$(srcdir)/$(price_files)' > $@.tmp && mv $@.tmp $@
