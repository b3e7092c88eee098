"""Robust mapping: the beams are kept and fitted anew at every update, so that none is believed or doubted for good."""
