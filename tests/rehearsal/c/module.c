/*
 * A kernel module file that modinfo, depmod and modprobe can read and no kernel can load: it has the description of one of
 * NVIDIA's open modules and no code. Compiled once per module with -DMODULE_NAME, -DMODULE_DEPENDS and -DMODULE_ALIAS.
 */
#define INFO(tag, value) \
    static const char info_##tag[] __attribute__((section(".modinfo"), used, aligned(1))) = #tag "=" value

INFO(license, "Dual MIT/GPL");
INFO(version, DRIVER_VERSION);
INFO(description, "SIMULATED (gpunode rehearsal): a module file without code");
INFO(name, MODULE_NAME);
INFO(depends, MODULE_DEPENDS);
#ifdef MODULE_ALIAS
INFO(alias, MODULE_ALIAS);
INFO(firmware, "nvidia/" DRIVER_VERSION "/gsp_ga10x.bin");
#endif
