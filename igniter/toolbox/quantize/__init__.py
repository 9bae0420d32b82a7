"""`igniter quantize`: QDQ models from samples."""
