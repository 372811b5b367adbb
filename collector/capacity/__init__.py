"""What a fleet of a given size wants: from measured figures to cores, disk, network and memory."""
