import ArgumentParser
import ClientCommandLine
import Foundation
import ProgramSupport
import RoomKit
import Wording

/// The program: a window with the tracks of a room.
@main
struct RoomViewCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "room-view",
        abstract: "Shows the tracks of a room in a window.",
        usage: "room-view --room <room> [<options>]",
        discussion: """
            Examples:
              room-view --room my-room
              room-view --room my-room --participant robot-7 --full-screen

            Keys:
              1 to 9                  show one track alone
              arrows, Tab             show the next track alone, or the one before
              0                       show all tracks
              f, F11, double click    full screen, and back
              i                       show or hide names, size, rate and age
              s                       write the pictures shown as PNG, here
              Esc                     leave full screen, or else quit
              q                       quit

            Each track is received as large as its tile, and a track whose tile is hidden is not received at all: \
            the network carries what is seen. With --full-size, every track is received at its full size all the time.

            The age is the time from capture to decoding. It has a "±" with its error where the clock of the other \
            machine is estimated. SDL draws the window: SDL_VIDEODRIVER and SDL_RENDER_DRIVER choose how.

            \(ExitStatus.pointer)
            """,
        version: roomKitVersion
    )

    @OptionGroup var joining: JoiningOptions
    @OptionGroup var viewing: ViewingOptions

    /// Runs the program.
    static func main() {
        StandardStreams.openMissing()
        do {
            if let problem = RawArguments.problem { throw ValidationError(problem) }
            var command = try parseAsRoot()
            try command.run()
        } catch {
            let arguments = Array(CommandLine.arguments.dropFirst())
            end(with: JoiningOptions.clearest(error, of: arguments, at: 0, for: self))
        }
    }

    /// Ends the program with a help screen, with a code alone, or with a sentence about unusable arguments.
    private static func end(with error: any Error) -> Never {
        guard let complaint = UsageComplaint.about(error, from: self) else { exit(withError: error) }
        complain(complaint.sentence)
        exit(withError: ExitCode(complaint.code))
    }

    /// How long the room is waited for without a window: an error that comes at once needs none.
    private static let joiningPatience = Duration.milliseconds(300)

    /// Joins the room and shows its tracks until somebody quits; runs on the main thread, as SDL wants it.
    func run() throws {
        signal(SIGPIPE, SIG_IGN)
        // A file that may become no longer (ulimit -f) is an error, which the file tells.
        signal(SIGXFSZ, SIG_IGN)
        do {
            // A missing display is an error before the room is joined.
            let video = try VideoSystem()
            let session = RoomSession(participant: viewing.participant, track: viewing.track)
            defer { session.leave() }
            session.begin(joining.connectOptions(for: "room-view"), leavingAfter: viewing.duration?.duration)
            session.waitToJoin(within: Self.joiningPatience)
            switch session.now.ending {
            case .wanted?: break
            case .failed(let error)?: throw error
            case nil: try show(session, with: video)
            }
        } catch {
            complain("\(error)")
            throw ExitCode(ExitStatus(error).rawValue)
        }
    }

    private func show(_ session: RoomSession, with video: borrowing VideoSystem) throws {
        LostDisplay.isWatchedFor = true
        defer { LostDisplay.isWatchedFor = false }
        let window = try video.makeWindow(title: joining.room, isFullScreen: viewing.fullScreen)
        session.bell.open()
        // Nobody pushes an event once SDL has ended.
        defer { session.bell.close() }
        try Viewer(of: session, in: window, roomName: joining.room, atFullSize: viewing.fullSize).run()
    }
}

/// Writes a sentence for people to standard error.
func complain(_ sentence: String) {
    let line = harmless("room-view: \(sentence)")
    try? FileHandle.standardError.write(contentsOf: Data("\(line)\n".utf8))
}
