"""What we do about a conversation: requests, actions, execution, runners, tools and the wires."""
