"""What a collector tells of itself: health, state, figures, logs; and whose clocks are off."""
