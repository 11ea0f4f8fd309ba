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
        let program: Program
        do {
            let screen = ["-screen", "0", "\(size)x24"] + options
            program = try Program("Xvfb", ["-displayfd", "1", "-nolisten", "tcp", "-noreset"] + screen)
        } catch {
            throw TestFailure("Xvfb does not start; make deps installs the package xvfb: \(error)")
        }
        self.program = program
        display = try await eventual("Xvfb names its display") { () -> String? in
            guard program.isRunning else { throw TestFailure("Xvfb ended: \(program.errors)") }
            return program.text.hasSuffix("\n") ? ":" + program.text.dropLast() : nil
        }
    }

    deinit {
        program.send(SIGKILL)
    }
}
