"""Every table of the lake as data; `registry` names them all."""
