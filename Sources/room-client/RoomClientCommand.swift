import ArgumentParser
import RoomKit

/// The room client's commands.
@main
struct RoomClientCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "room-client",
        abstract: "Publishes a camera to a room, and receives what others publish.",
        discussion: """
            In three terminals:

              room-server
              room-client connect --room my-room
              room-client subscribe --room my-room --dump out

            \(ExitStatus.table)
            """,
        version: roomKitVersion,
        subcommands: [ConnectCommand.self, SubscribeCommand.self, DevicesCommand.self, VerifyCommand.self]
    )
}
