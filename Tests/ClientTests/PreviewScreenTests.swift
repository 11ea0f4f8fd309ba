import Foundation
import MediaCore
import RoomKit
import TestTools
import Testing
import Threading
import VideoProcessing

@testable import room_client

@Suite("Preview on a real terminal", .timeLimit(.minutes(2)))
struct PreviewScreenTests {
    private static let sixels = "\u{1B}P0;1;0q"
    private static let halfBlock = "\u{2580}"
    private static let beginning = "\u{1B}[?1049h"
    /// Ten columns of eight pixels, ten rows of sixteen.
    private static let size = TerminalSize(columns: 10, rows: 10, pixels: Dimensions(width: 80, height: 160))

    /// A dark picture with one bright quarter.
    private func frame(
        _ width: Int,
        _ height: Int,
        isBright: (_ isLeft: Bool, _ isTop: Bool) -> Bool = { $0 && $1 }
    ) -> VideoFrame {
        let buffer = VideoBuffer(dimensions: Dimensions(width: width, height: height))
        buffer.withMutablePlanes { luma, chromaU, chromaV in
            for row in 0..<height {
                for column in 0..<width {
                    let value: UInt8 = isBright(column < width / 2, row < height / 2) ? 235 : 16
                    luma[row * buffer.lumaStride + column] = value
                }
            }
            chromaU.update(repeating: 128)
            chromaV.update(repeating: 128)
        }
        return VideoFrame(buffer: buffer, timestamp: MonotonicInstant(nanoseconds: 0))
    }

    /// A device on the terminal, which waits for answers as long as a busy machine may take.
    private func device(_ terminal: PseudoTerminal, patience: Duration = patience) -> TerminalDevice {
        TerminalDevice(input: terminal.device, output: terminal.device, patience: patience)
    }

    /// Shows a picture on the terminal, and ends.
    private func show(_ terminal: PseudoTerminal, on device: TerminalDevice) async throws {
        let screen = try PreviewScreen(on: device)
        screen.render(frame(16, 12))
        screen.setStatus("a status")
        _ = try await terminal.shows("the status") { $0.contains("a status") ? true : nil }
        screen.close()
        terminal.close()
    }

    @Test("A local picture is turned and mirrored as its tags say", arguments: [false, true])
    func orientation(isMirrored: Bool) {
        let terminal = TerminalSize(columns: 8, rows: 9)
        var tagged = frame(16, 8)
        (tagged.rotation, tagged.isMirrored) = (.clockwise90, isMirrored)
        // Turned clockwise, the quarter at the top left comes to the top right, and mirroring brings it back.
        let upright = frame(8, 16) { $0 == isMirrored && $1 }
        var (canvas, expected) = (PreviewCanvas(TerminalAnswers([])), PreviewCanvas(TerminalAnswers([])))
        let output = canvas.draw(tagged, isNew: true, status: "", on: terminal)
        #expect(output == expected.draw(upright, isNew: true, status: "", on: terminal))
        #expect(String(decoding: output, as: UTF8.self).contains(Self.halfBlock))
    }

    @Test(
        "A terminal that says it has sixels gets them, and one that does not say so gets half blocks",
        arguments: [("\u{1B}[?62;4c", true), ("\u{1B}[?62;22c", false)]
    )
    func answers(answer: String, hasSixels: Bool) async throws {
        let terminal = try PseudoTerminal(Self.size, answer: answer)
        try await show(terminal, on: device(terminal))
        #expect(terminal.text.contains(Self.sixels) == hasSixels)
        #expect(terminal.text.contains(Self.halfBlock) != hasSixels)
        #expect(!terminal.text.contains("[?62;"), "the answer is not shown")
    }

    @Test("A terminal that answers too late, or never, gets half blocks", arguments: [nil, "\u{1B}[?62;4c"])
    func silence(answer: String?) async throws {
        #expect(TerminalDevice.usualPatience == .milliseconds(200))
        let terminal = try PseudoTerminal(Self.size)
        let began = MonotonicClock.now
        let screen = try PreviewScreen(on: device(terminal, patience: TerminalDevice.usualPatience))
        #expect(MonotonicClock.now.duration(since: began) >= TerminalDevice.usualPatience)
        // The time to answer is over when drawing begins.
        _ = try await terminal.shows("it begins") { $0.contains(Self.beginning) ? true : nil }
        if let answer { terminal.type(answer) }
        screen.render(frame(16, 12))
        _ = try await terminal.shows("half blocks") { $0.contains(Self.halfBlock) ? true : nil }
        screen.close()
        terminal.close()
        #expect(!terminal.text.contains(Self.sixels) && !terminal.text.contains("[?62;"))
    }

    @Test("A piped input is never read, and then the terminal is asked nothing")
    func pipedInput() async throws {
        let terminal = try PseudoTerminal(Self.size, answer: "\u{1B}[?62;4c")
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        let text = Array("\u{1B}[?62;4c".utf8)
        try #require(write(ends[1], text, text.count) == text.count)
        try await show(terminal, on: TerminalDevice(input: ends[0], output: terminal.device, patience: patience))
        #expect(terminal.text.contains(Self.halfBlock) && !terminal.text.contains(Self.sixels))
        #expect(!terminal.text.contains("\u{1B}[c"))
        var left: Int32 = 0
        #expect(ioctl(ends[0], UInt(FIONREAD), &left) == 0 && Int(left) == text.count)
    }

    // 198 kB were sent with each new status of a large terminal, also when no picture came.
    @Test("A new status is drawn alone, and the picture again when it or the terminal's size is new")
    func statusAlone() async throws {
        let terminal = try PseudoTerminal(Self.size, answer: "\u{1B}[?62c")
        let screen = try PreviewScreen(on: device(terminal))
        func cells(of text: String) -> Int { text.components(separatedBy: Self.halfBlock).count - 1 }
        screen.render(frame(16, 12))
        screen.setStatus("status 0")
        var former = cells(of: try await terminal.shows("it") { $0.contains("status 0") ? $0 : nil })
        #expect(former > 0)
        for number in 1...3 {
            screen.setStatus("status \(number)")
            let text = try await terminal.shows("status \(number)") { $0.contains("status \(number)") ? $0 : nil }
            #expect(cells(of: text) == former)
        }
        for draw in [{ screen.render(frame(16, 12)) }, { screen.resized() }] {
            draw()
            former = try await terminal.shows("the picture") { cells(of: $0) > former ? cells(of: $0) : nil }
            // What is left of that picture.
            screen.setStatus("status \(former)")
            former = try await terminal.shows("it") { $0.contains("status \(former)") ? cells(of: $0) : nil }
        }
        screen.close()
        terminal.close()
        #expect(cells(of: terminal.text) == former)
        var canvas = PreviewCanvas(TerminalAnswers([]))
        _ = canvas.draw(frame(16, 12), isNew: true, status: "", on: TerminalSize(columns: 8, rows: 9))
        let output = canvas.draw(frame(16, 12), isNew: false, status: "", on: TerminalSize(columns: 9, rows: 9))
        #expect(cells(of: String(decoding: output, as: UTF8.self)) > 0)
    }

    /// A preview on a terminal that takes the beginning of a large picture, and then nothing.
    ///
    /// Each cell of the picture has a colour of its own, so that it takes more than twice what the terminal keeps for
    /// its reader, which is 64 KiB.
    private func heldPreview(
        _ terminal: PseudoTerminal,
        patience: Duration
    ) async throws -> (screen: PreviewScreen, pictureSize: Int) {
        let size = TerminalSize(columns: 220, rows: 60)
        let buffer = VideoBuffer(dimensions: Dimensions(width: 220, height: 118))
        buffer.withMutablePlanes { luma, chromaU, chromaV in
            for index in luma.indices { luma[index] = UInt8(16 + index * 7 % 220) }
            chromaU.update(repeating: 128)
            chromaV.update(repeating: 128)
        }
        let picture = VideoFrame(buffer: buffer, timestamp: MonotonicInstant(nanoseconds: 0))
        try terminal.resize(size)
        var canvas = PreviewCanvas(TerminalAnswers([]))
        let pictureSize = canvas.draw(picture, isNew: true, status: "", on: size).count
        try #require(pictureSize > 150_000)
        let screen = try PreviewScreen(on: device(terminal, patience: .zero), patience: patience)
        screen.render(picture)
        try await eventually("the picture begins") { terminal.isHolding }
        return (screen, pictureSize)
    }

    // The whole picture was one write, beside which the terminal seemed to take nothing: it was not given back.
    @Test("When the preview ends, the rest of a picture that a slow terminal takes is given up for the ending")
    func slowTerminal() async throws {
        let terminal = try PseudoTerminal(Self.size, holdingAt: Self.halfBlock)
        let (screen, pictureSize) = try await heldPreview(terminal, patience: patience)
        let closing = Task.detached { screen.close() }
        try await eventually("it is to end") { screen.isClosed }
        terminal.release()
        await closing.value
        terminal.close()
        let ending = String(decoding: TerminalDevice.ending, as: UTF8.self)
        #expect(terminal.text.hasSuffix(ending), "\(terminal.text.suffix(100).debugDescription)")
        #expect(ending.hasPrefix("\u{18}\u{1B}\\") && ending.hasSuffix("\u{1B}[?25h\u{1B}[?1049l"))
        #expect(terminal.text.utf8.count < pictureSize - 20_000)
    }

    @Test("A terminal that takes nothing at all holds up no end, and gets the ending when it goes on")
    func stuckTerminal() async throws {
        let terminal = try PseudoTerminal(Self.size, holdingAt: Self.halfBlock)
        let (screen, _) = try await heldPreview(terminal, patience: .milliseconds(100))
        screen.close()
        #expect(!terminal.text.contains("\u{1B}[?1049l"))
        terminal.release()
        _ = try await terminal.shows("the ending") { $0.hasSuffix("\u{1B}[?1049l") ? true : nil }
        terminal.close()
    }

    /// The cells of the picture that was drawn last: its first row and column, and its columns.
    private func lastPicture(_ text: String) -> [Int]? {
        guard let cleared = text.components(separatedBy: "\u{1B}[2J").last,
            let match = cleared.firstMatch(of: /\u{1B}\[(\d+);(\d+)H\u{1B}\[38;2;[^H]*\u{1B}\[0m/)
        else { return nil }
        let columns = match.output.0.count { String($0) == Self.halfBlock }
        return [Int(match.output.1) ?? 0, Int(match.output.2) ?? 0, columns]
    }

    @Test("When the terminal's size changes, the last picture is drawn again to fit it")
    func resizing() async throws {
        let terminal = try PseudoTerminal(TerminalSize(columns: 20, rows: 11), answer: "\u{1B}[?62c")
        let screen = try PreviewScreen(on: device(terminal))
        await screen.heedResizing()
        screen.render(frame(16, 16))
        let isSettled = { (cells: [Int]) in
            try await terminal.shows("the picture at \(cells)") { lastPicture($0) == cells ? true : nil }
        }
        _ = try await isSettled([1, 1, 20])
        for (size, cells) in [
            (TerminalSize(columns: 8, rows: 7), [2, 1, 8]), (TerminalSize(columns: 30, rows: 6), [1, 11, 10]),
        ] {
            try terminal.resize(size)
            // The kernel sends it to the programs in the foreground of the terminal, which is no test's.
            kill(getpid(), SIGWINCH)
            _ = try await isSettled(cells)
        }
        screen.close()
        terminal.close()
    }
}
