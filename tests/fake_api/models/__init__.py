"""Models that the fake can play: scripted ones and ones that follow rules. One file per behaviour."""
