"""The pure request pipeline between HTTP and a ChatModel. No sockets."""
