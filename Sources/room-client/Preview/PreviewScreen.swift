import ArgumentParser
import Foundation
import RoomKit
import Threading
import UnixSignals
import VideoProcessing

/// Draws the pictures of a track on the terminal, with a status below, on a thread of its own.
///
/// Depth 1: the newest picture wins. At most 15 pictures a second are drawn, because each takes up to a megabyte. It
/// uses sixels if the terminal says that it has them, and half blocks in 24-bit colours otherwise.
final class PreviewScreen: VideoRenderer {
    private struct State: Sendable {
        var frame: VideoFrame?
        var status = ""
        /// Whether there is something to draw.
        var isStale = true
        var isClosed = false
        var isEnded = false
        var isRestored = false
    }

    private static let interval = Duration.nanoseconds(1_000_000_000 / 15)

    private let device: TerminalDevice
    private let answers: TerminalAnswers
    private let state = Monitor(State())

    /// Takes over the terminal, which must be standard output.
    ///
    /// - Throws: If the system has no thread.
    init(on device: TerminalDevice = TerminalDevice()) throws(CommandFailure) {
        self.device = device
        answers = device.ask()
        do throws(ThreadShortage) {
            _ = try WorkerThread(name: "preview") { [self] in
                draw()
                state.change { $0.isEnded = true }
            }
        } catch {
            device.restore()
            throw CommandFailure(.unavailable, "There is no preview: \(error).")
        }
    }

    func render(_ frame: VideoFrame) {
        state.change { ($0.frame, $0.isStale) = (frame, true) }
    }

    /// Takes the picture away.
    func clear() {
        state.change { ($0.frame, $0.isStale) = (nil, true) }
    }

    /// Shows a line below the picture.
    func setStatus(_ line: String) {
        state.change { ($0.status, $0.isStale) = (line, true) }
    }

    /// Draws the last picture again, for a terminal whose size has changed.
    func resized() {
        state.change { $0.isStale = true }
    }

    /// Draws again whenever the system says that the size has changed, as long as there is a preview.
    func heedResizing() async {
        let changes = await UnixSignalsSequence(trapping: .sigwinch)
        Task { [weak self] in
            for await _ in changes { self?.resized() }
        }
    }

    /// Ends drawing and gives the terminal back as it was; a second call does nothing.
    ///
    /// It waits a second at most for a terminal that takes no output.
    func close() {
        state.change { $0.isClosed = true }
        _ = state.wait(until: MonotonicClock.now + .seconds(1)) { $0.isEnded ? true : nil }
        let isFirst = state.withLock { state in
            defer { state.isRestored = true }
            return !state.isRestored
        }
        if isFirst { device.restore() }
    }

    // MARK: On the preview's thread

    private func draw() {
        device.write(Array("\u{1B}[?1049h\u{1B}[?25l".utf8))
        var canvas = PreviewCanvas(answers)
        while let (frame, status) = next() {
            let began = MonotonicClock.now
            device.write(canvas.draw(frame, status: status, on: device.size))
            _ = state.wait(until: began + Self.interval) { $0.isClosed ? true : nil }
        }
    }

    private func next() -> (VideoFrame?, String)? {
        state.wait { state -> (VideoFrame?, String)?? in
            if state.isClosed { return .some(nil) }
            guard state.isStale else { return nil }
            state.isStale = false
            return (state.frame, state.status)
        } ?? nil
    }
}

/// Composes what the terminal is sent for each picture; memory is reused.
struct PreviewCanvas {
    private let answers: TerminalAnswers
    private var painter: any PicturePainter
    private let rotator = FrameScaler()
    private var scaler = FrameScaler()
    private var terminal: TerminalSize?
    private var layout: PreviewLayout?
    private var output: [UInt8] = []

    init(_ answers: TerminalAnswers) {
        self.answers = answers
        painter = HalfBlockPainter()
    }

    mutating func draw(_ frame: VideoFrame?, status: String, on terminal: TerminalSize) -> [UInt8] {
        output.removeAll(keepingCapacity: true)
        let upright = frame.map { rotator.upright($0) }
        let layout = upright.flatMap { arrange($0.dimensions, on: terminal) }
        if terminal != self.terminal || layout != self.layout {
            output.append("\u{1B}[0m\u{1B}[2J")
            (self.terminal, self.layout) = (terminal, layout)
            // A pool holds buffers of one size.
            scaler = FrameScaler()
        }
        if let upright, let layout {
            painter.paint(scaler.fit(upright, to: layout.dimensions).buffer, layout, into: &output)
        }
        output.append(row: terminal.rows, column: 1)
        // Without wrapping: characters may be two cells wide, and a wrapped line would move the picture up.
        output.append("\u{1B}[?7l")
        output += Array(status.filter { !$0.isNewline }.prefix(terminal.columns - 1).utf8)
        output.append("\u{1B}[K\u{1B}[?7h")
        return output
    }

    /// Finds the picture's place; with sixels, if the terminal has them and says how large its cells are.
    private mutating func arrange(_ picture: Dimensions, on terminal: TerminalSize) -> PreviewLayout? {
        if answers.hasSixels,
            let layout = PreviewLayout(sixelsFor: picture, on: terminal, limit: answers.largestPicture)
        {
            if !(painter is SixelPainter) { painter = SixelPainter(registers: answers.registers) }
            return layout
        }
        if !(painter is HalfBlockPainter) { painter = HalfBlockPainter() }
        return PreviewLayout(halfBlocksFor: picture, on: terminal)
    }
}

/// The option of commands that can show pictures on the terminal.
struct PreviewOptions: ParsableArguments {
    @Flag(help: "Show the pictures on this terminal: by sixels where it has them, otherwise by coloured half blocks.")
    var preview = false

    /// Checks that there is a terminal to draw on.
    func check(isJSON: Bool) throws {
        guard preview else { return }
        guard !isJSON else { throw ValidationError("--preview and --json both need standard output: leave one out.") }
        guard isatty(STDOUT_FILENO) == 1 else {
            throw ValidationError("--preview needs standard output to be a terminal; run it in one, or leave it out.")
        }
        guard !Terminal.isDumb else {
            throw ValidationError("--preview cannot draw on this terminal, whose TERM is dumb; use another one.")
        }
    }

    /// Takes over the terminal, if asked to, until `Terminal.endPreview()`.
    func begin() async throws -> PreviewScreen? {
        guard preview else { return nil }
        let screen = try PreviewScreen()
        Terminal.show(screen)
        await screen.heedResizing()
        return screen
    }
}
