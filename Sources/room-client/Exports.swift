// The whole program uses the exit codes and the options that it shares with room-view.
@_exported import ClientCommandLine
