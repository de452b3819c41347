"""What tests of several rooms share: clients, values, and servers of others on loopback."""
