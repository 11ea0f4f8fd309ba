import Glibc
package import MediaCore
import TestTools

/// An X server of the test's own, whose screen is in memory.
package final class XServer: Sendable {
    /// The display's name, as in `:5`.
    package let display: String
    /// The server.
    package let program: Program

    /// Starts a server with a screen of `size`, and with further options of Xvfb.
    ///
    /// - Throws: An error if the package `xvfb` is not installed; `make deps` installs it.
    package init(_ size: Dimensions, options: [String] = []) async throws {
        let turn = try StartingTurn()
        try await turn.begin()
        let program: Program
        do {
            let screen = ["-screen", "0", "\(size)x24"] + options
            program = try Program("Xvfb", ["-displayfd", "1", "-nolisten", "tcp", "-noreset"] + screen)
        } catch {
            throw TestFailure("Xvfb does not start; make deps installs the package xvfb: \(error)")
        }
        self.program = program
        defer { withExtendedLifetime(turn) {} }
        display = try await eventual("Xvfb names its display") { () -> String? in
            guard program.isRunning else { throw TestFailure("Xvfb ended: \(program.errors)") }
            return program.text.hasSuffix("\n") ? ":" + program.text.dropLast() : nil
        }
    }

    deinit {
        program.send(SIGKILL)
    }
}

/// The right to start a server: two that start at one moment, also for different processes, may choose the same display.
private struct StartingTurn: ~Copyable {
    private let descriptor: Int32

    init() throws {
        descriptor = open("/tmp/.room-tests-x-servers", O_CREAT | O_RDWR | O_CLOEXEC, 0o666)
        if descriptor < 0 { throw TestFailure("no lock file in /tmp: errno \(errno)") }
    }

    deinit { close(descriptor) }

    func begin() async throws {
        try await eventually("the X servers of other tests have started") { flock(descriptor, LOCK_EX | LOCK_NB) == 0 }
    }
}
