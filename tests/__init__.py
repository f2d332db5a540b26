"""All tests; what several of them share lies beside this file."""
