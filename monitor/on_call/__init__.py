"""What reaches the person on call: drills through Alertmanager, and the relay to chats."""
