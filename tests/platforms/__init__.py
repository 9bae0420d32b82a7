"""Other platforms: aarch64 under qemu, Windows under Wine, and the structure of files for systems without emulator."""
