import ArgumentParser
import Glibc
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
        subcommands: [
            ConnectCommand.self, SubscribeCommand.self, DevicesCommand.self, VerifyCommand.self, AdaptCommand.self,
        ]
    )

    /// Opens missing standard streams, then runs the program.
    ///
    /// If a standard stream is closed, a socket or file could get its descriptor number, and then the program's output.
    static func main() async {
        var number: Int32
        repeat { number = unsafe open("/dev/null", O_RDWR | O_CLOEXEC) } while (0...STDERR_FILENO).contains(number)
        close(number)
        await main(nil)
    }
}
