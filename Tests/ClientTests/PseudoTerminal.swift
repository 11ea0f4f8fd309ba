import Foundation
import MediaCore
import TestTools
import Testing
import Threading

@testable import room_client

/// A terminal of the kernel's whose other end the test holds: it keeps what is written, and answers questions.
final class PseudoTerminal: Sendable {
    /// The end that a program has for its terminal.
    let device: Int32
    private let test: Int32
    private let written = Monitor((bytes: [UInt8](), isOver: false))
    private let isHeld: Monitor<Bool>

    /// Opens a terminal.
    ///
    /// - Parameters:
    ///   - size: Its size.
    ///   - answer: What it answers to the question for its attributes; `nil` for never.
    ///   - hold: What was written last when it stops to take anything, until `release()`.
    /// - Throws: `TestFailure` if the kernel has none.
    init(_ size: TerminalSize, answer: String? = nil, holdingAt hold: String? = nil) throws {
        var (test, device): (Int32, Int32) = (-1, -1)
        guard openpty(&test, &device, nil, nil, nil) == 0 else { throw TestFailure("no terminal: errno \(errno)") }
        (self.test, self.device) = (test, device)
        isHeld = Monitor(false)
        try resize(size)
        let (written, isHeld) = (written, isHeld)
        _ = try WorkerThread(name: "terminal") { [test = self.test] in
            var chunk = [UInt8](repeating: 0, count: 4096)
            var isAsked = false
            var hold = hold
            while true {
                isHeld.wait { $0 ? nil : () }
                let count = read(test, &chunk, chunk.count)
                guard count > 0 else { break }
                let text = written.withLock { state in
                    state.bytes += chunk[..<count]
                    return isAsked && hold == nil ? "" : String(decoding: state.bytes, as: UTF8.self)
                }
                if let last = hold, text.contains(last) {
                    hold = nil
                    isHeld.change { $0 = true }
                }
                if !isAsked, let answer, text.contains("\u{1B}[c") {
                    isAsked = true
                    Self.type(answer, test)
                }
            }
            written.change { $0.isOver = true }
        }
    }

    /// Closes both ends; then everything that was written is in `text`.
    func close() {
        Foundation.close(device)
        _ = written.waitPatiently { $0.isOver ? true : nil }
        Foundation.close(test)
    }

    /// Whether it takes nothing now.
    var isHolding: Bool { isHeld.withLock { $0 } }

    /// Takes what is written from now on.
    func release() {
        isHeld.change { $0 = false }
    }

    /// Everything that was written so far.
    var text: String { written.withLock { String(decoding: $0.bytes, as: UTF8.self) } }

    /// Waits until something has been written for which `pick` returns a value.
    func shows<Value: Sendable>(_ what: String, _ pick: (String) -> Value?) async throws -> Value {
        try await eventual("\(what); it shows: \(text.suffix(300).debugDescription)") { pick(text) }
    }

    /// Gives the terminal another size, as a window's does that is dragged.
    func resize(_ size: TerminalSize) throws {
        var window = winsize()
        (window.ws_col, window.ws_row) = (UInt16(size.columns), UInt16(size.rows))
        (window.ws_xpixel, window.ws_ypixel) = (UInt16(size.pixels.width), UInt16(size.pixels.height))
        guard ioctl(test, UInt(TIOCSWINSZ), &window) == 0 else { throw TestFailure("no size: errno \(errno)") }
    }

    /// Answers, or types keys.
    func type(_ text: String) {
        Self.type(text, test)
    }

    private static func type(_ text: String, _ descriptor: Int32) {
        _ = Array(text.utf8).withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    }
}
