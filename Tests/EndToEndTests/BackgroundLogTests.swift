import Glibc
import TestTools
import Testing
import Threading

@testable import room_server

@Suite("The server's log", .timeLimit(.minutes(1)))
struct BackgroundLogTests {
    /// A failed write was ignored, so that the log seemed to be whole.
    @Test("Lines that a full disk does not take are counted, and the note about them too comes when there is room")
    func fullDisk() throws {
        let tried = Monitor([String]())
        let isFull = Monitor(true)
        let log = try BackgroundLog { text in
            guard !isFull.withLock({ $0 }) else {
                tried.change { $0.append(text) }
                return false
            }
            tried.change { $0.append("written: " + text) }
            return true
        }
        for line in ["a", "b", "c"] { log.add(line) }
        // The first line, and the note in place of the others.
        #expect(tried.wait { $0.count == 3 ? true : nil } == true)
        isFull.change { $0 = false }
        log.add("d")
        log.add("e")
        log.close()
        let note = "\n(3 lines are missing here: they could not be written in time)\n"
        #expect(tried.withLock { Array($0.dropFirst(3)) } == ["written: " + note, "written: d", "written: e"])
    }

    @Test("A full non-blocking pipe is waited for, and a write that fails is told")
    func descriptors() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let (reader, writer) = (ends[0], ends[1])
        _ = fcntl(writer, F_SETFL, O_NONBLOCK)
        let text = String(repeating: "x", count: 200_000)
        let isWritten = Monitor<Bool?>(nil)
        let thread = try WorkerThread(name: "writer") {
            let result = LogOutput.write(text, to: writer)
            isWritten.change { $0 = result }
        }
        usleep(50_000)
        #expect(isWritten.withLock { $0 } == nil)
        var (count, buffer) = (0, [UInt8](repeating: 0, count: 65_536))
        while count < text.utf8.count { count += read(reader, &buffer, buffer.count) }
        #expect(isWritten.wait { $0 } == true)
        thread.join()
        close(reader)
        close(writer)
        let full = open("/dev/full", O_WRONLY | O_CLOEXEC)
        defer { close(full) }
        #expect(!LogOutput.write("x", to: full))
    }
}
