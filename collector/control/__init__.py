"""What changes a store by order: the orders, the door of a running collector that takes them, and the key to it."""
