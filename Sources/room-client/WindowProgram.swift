import ArgumentParser
import ClientCommandLine
import Diagnosis
import Foundation

/// Starts `room-view`, which shows tracks in a window.
///
/// This program itself never links SDL, which pulls sound and graphics libraries onto machines without a screen.
enum WindowProgram {
    /// The program's name.
    private static let name = "room-view"

    /// Puts `room-view` in this program's place, so that signals and the exit code are its own.
    ///
    /// - Throws: `ExitCode`, after a sentence, if there is no such program.
    static func takeOver(with arguments: [String]) throws -> Never {
        // A thread of Swift's pool may have signals blocked, and the program would inherit that.
        var none = sigset_t()
        unsafe sigemptyset(&none)
        unsafe pthread_sigmask(SIG_SETMASK, &none, nil)
        let status = execute(arguments)
        let problem =
            status == ENOENT
            ? "There is no \(name) beside room-client or in PATH, and it draws the window"
            : "\(name), which draws the window, cannot be started: \(unsafe String(cString: strerror(status)))"
        Reporter(isJSON: false).reportFailure(
            FailureEvent(
                "\(problem). Build it with libsdl2-dev installed (make deps build), or copy it from where it was built."
            )
        )
        throw ExitCode(ExitStatus.unavailable.rawValue)
    }

    /// Executes the program beside this one, or else the one in PATH; returns the error number if there is none.
    private static func execute(_ arguments: [String]) -> Int32 {
        var strings = unsafe ([name] + arguments).map { unsafe strdup($0) } + [nil]
        defer { unsafe strings.forEach { unsafe free($0) } }
        if let path = pathBeside {
            _ = unsafe execv(path, &strings)
            // A program that is there and cannot be executed is what the user wants to know of.
            if errno != ENOENT { return errno }
        }
        _ = unsafe execvp(name, &strings)
        return errno
    }

    /// Starts the program for a moment, without a window, to see whether all its libraries are there.
    static func examine() -> LibraryCheck.Window {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(name)" }
        let paths = [pathBeside].compactMap(\.self) + folders
        guard let path = paths.first(where: { FileManager.default.isExecutableFile(atPath: $0) }) else {
            return .absent
        }
        let code = status(of: path, ["--version"])
        return code == 0 ? .runs(path) : .fails(path, code: code)
    }

    /// How long `room-view --version` may take.
    private static let patience = Duration.seconds(5)

    /// Runs a program without input and output, and kills it after `patience`; returns its exit code, or the number of
    /// the signal that ended it, or 126 if it cannot be started.
    private static func status(of path: String, _ arguments: [String]) -> Int32 {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        for descriptor in STDIN_FILENO...STDERR_FILENO {
            unsafe posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
        }
        var strings = unsafe ([path] + arguments).map { unsafe strdup($0) } + [nil]
        defer { unsafe strings.forEach { unsafe free($0) } }
        // A thread of Swift's pool may have signals blocked, and the program would inherit that.
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        unsafe sigemptyset(&none)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var child: pid_t = 0
        guard unsafe posix_spawn(&child, path, &actions, &attributes, &strings, environ) == 0 else { return 126 }
        var status: Int32 = 0
        let deadline = ContinuousClock.now + patience
        while unsafe waitpid(child, &status, WNOHANG) == 0 {
            if ContinuousClock.now > deadline { kill(child, SIGKILL) }
            usleep(5000)
        }
        // An exit code is in the second byte; a signal is in the first.
        return status & 0x7F == 0 ? status >> 8 & 0xFF : status & 0x7F
    }

    /// Where the program is if it is in the directory of this one.
    private static var pathBeside: String? {
        let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return path.flatMap { path in path.lastIndex(of: "/").map { path[...$0] + name } }
    }
}

/// The option of `subscribe` that leaves everything to `room-view`.
struct WindowOptions: ParsableArguments {
    @Flag(help: "Show the tracks in a window, and do nothing else; room-client view has more options.")
    var window = false

    /// Checks that nothing is wanted that the program of the window does not do.
    func check(
        isDumped: Bool,
        hasSnapshot: Bool,
        _ hasPreview: Bool,
        _ preferring: PreferenceOptions,
        _ connection: ConnectionOptions
    ) throws {
        guard window else { return }
        let others = [
            ("--dump", isDumped), ("--snapshot", hasSnapshot), ("--preview", hasPreview), ("--json", connection.json),
            ("--size", preferring.size != nil), ("--fps", preferring.fps != nil),
        ]
        guard let option = others.first(where: { $0.1 })?.0 else { return }
        throw ValidationError("--window does nothing but show a window: run a second command for \(option).")
    }

    /// Puts the program of the window in this one's place, if a window is wanted.
    func show(_ joining: JoiningOptions, participant: String?, track: String?, duration: Seconds?) throws {
        guard window else { return }
        let options = ViewingOptions.arguments(
            participant: participant,
            track: track,
            duration: duration,
            isFullScreen: false,
            atFullSize: false
        )
        try WindowProgram.takeOver(with: joining.arguments + options)
    }
}
