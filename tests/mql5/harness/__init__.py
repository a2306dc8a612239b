"""What runs MQL5 programs without a terminal: translator, compiler, surroundings, peers."""
