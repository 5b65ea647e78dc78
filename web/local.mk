include web/ui/local.mk
