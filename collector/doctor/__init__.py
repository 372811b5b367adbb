"""`tachograph doctor`: looks a running collector over, and says what is wrong and what to do."""
