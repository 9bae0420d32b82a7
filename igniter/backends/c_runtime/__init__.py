"""The run time of a library, written in C (`src/`) and shipped as LLVM IR (`ir/`): docs/explanation/c-runtime.md."""
