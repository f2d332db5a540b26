"""Lakes that earlier versions wrote, kept as archives."""
