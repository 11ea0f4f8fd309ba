import CV4L2
import Foundation
import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import V4L2Capture

@Suite("Kernel nodes", .timeLimit(.minutes(1)))
struct KernelNodeTests {
    @Test("A missing node, and one that is no video device, say so by errno")
    func errors() throws {
        #expect(throws: SystemCallFailure(attempt: "open", status: ENOENT)) {
            try KernelNode(path: "/dev/video-there-is-none")
        }
        let node = try KernelNode(path: "/dev/null")
        #expect(throws: SystemCallFailure(attempt: "ask the abilities of", status: ENOTTY)) {
            try V4L2Device(node: node)
        }
        #expect(throws: SystemCallFailure.self) { try node.map(length: 4096, offset: 0) }
    }

    @Test("A wait ends by its deadline, by a request to stop, and by what the node says")
    func waiting() throws {
        let stop = try StopSignal()
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let (reader, writer) = (ends[0], ends[1])
        defer { close(writer) }
        let node = try KernelNode(path: "/proc/self/fd/\(reader)")
        close(reader)
        // Ends a wait that overlooks its deadline.
        let (late, isOver) = (try StopSignal(), Monitor(false))
        let watchdog = try WorkerThread(name: "watchdog") {
            let isInTime = isOver.wait(until: MonotonicClock.now + patience) { $0 ? true : nil } ?? false
            if !isInTime { late.request() }
        }
        #expect(node.wait(until: MonotonicClock.now, or: late) == [])
        #expect(node.wait(until: MonotonicClock.now + .milliseconds(5), or: late) == [])
        isOver.change { $0 = true }
        watchdog.join()
        var byte: UInt8 = 1
        write(writer, &byte, 1)
        #expect(node.wait(until: MonotonicClock.now + .seconds(60), or: stop) == .readable)
        let thread = try WorkerThread(name: "stopper") { stop.request() }
        thread.join()
        #expect(node.wait(until: MonotonicClock.now + .seconds(60), or: stop).contains(.stopped))
        #expect(stop.isRequested)
    }

    // In a container, /dev/video0 may be what sysfs calls video2.
    @Test("The hardware behind a node is found by the node's number, not by its name")
    func hardware() throws {
        let folder = try TemporaryDirectory()
        // What /dev/null is, on every machine.
        let node = folder("dev/char/1:3")
        try FileManager.default.createDirectory(atPath: node, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(atPath: "\(node)/device", withDestinationPath: folder.path)
        try store("3\n".utf8, at: "\(node)/index")
        let system = KernelCameraSystem(sysfs: folder.path)
        let hardware = try #require(system.hardware(of: "/dev/null"))
        #expect(hardware.place == system.resolve(folder.path) && hardware.index == 3)
        #expect(system.hardware(of: "/dev/zero") == nil)
        #expect(system.hardware(of: "/dev/video-there-is-none") == nil && system.hardware(of: folder.path) == nil)
    }

    @Test("The holder of a device is found by its open files, and the asking program does not count")
    func holder() throws {
        let path = NSTemporaryDirectory() + "held-\(UInt64.random(in: 0...UInt64.max))"
        try #require(FileManager.default.createFile(atPath: path, contents: nil))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let system = KernelCameraSystem()
        #expect(system.holder(of: path) == nil)
        let first = open(path, O_RDONLY | O_CLOEXEC)
        #expect(system.holder(of: path) == nil)
        let second = open(path, O_RDONLY | O_CLOEXEC)
        #expect(system.holder(of: path) == "this program (pid \(getpid()))")
        close(first)
        close(second)
        let (childInput, input) = try makeStream()
        let (output, childOutput) = try makeStream()
        let script = "exec 9<\"$0\"; echo; read line"
        let child = try ChildProcess(["sh", "-c", script, path], input: childInput, output: childOutput)
        for end in [childInput, childOutput] { close(end) }
        var byte: UInt8 = 0
        try #require(read(output, &byte, 1) == 1)
        #expect(system.holder(of: path)?.hasSuffix("(pid \(child.identifier))") == true)
        for end in [input, output] { close(end) }
        _ = child.wait()
    }

    @Test(
        "A node's number is read off its path",
        arguments: [
            ("/dev/video0", 0), ("/dev/video12", 12), ("/dev/video", nil), ("/dev/video1x", nil), ("video1", nil),
        ]
            as [(String, Int?)]
    )
    func numbers(path: String, number: Int?) {
        #expect(nodeNumber(of: path) == number)
    }
}

@Suite("libv4lconvert", .timeLimit(.minutes(1)))
struct LibV4LConversionTests {
    @Test("The formats that libv4lconvert can turn into I420 are found out without a device")
    func convertible() throws {
        let able = try ["YVYU", "Y16", "BA81", "S561"].map { try #require(PixelFormat(fourCC: $0)) }
        let unable = try ["ZZZZ", "H264", "RGBP", "HSV3", "HSV4"].map { try #require(PixelFormat(fourCC: $0)) }
        #expect(LibV4LConversion.convertible(able + unable, descriptor: -1) == Set(able))
        #expect(LibV4LConversion.convertible([], descriptor: -1).isEmpty)
    }

    // libv4lconvert took the padding as pixels: pictures were sheared, and beyond them it read foreign memory.
    @Test("Padded rows give the same picture as rows without padding", arguments: ["pRAA", "RG10", "BYR2", "NV61"])
    func padding(code: String) throws {
        let format = try #require(PixelFormat(fourCC: code))
        let size = Dimensions(width: 64, height: 16)
        let (row, rows) = code == "pRAA" ? (80, 16) : code == "NV61" ? (64, 32) : (128, 16)
        var random = SeededGenerator(seed: 3)
        let content = (0..<rows).map { _ in (0..<row).map { _ in UInt8.random(in: 0...255, using: &random) } }
        let script = CameraScript(formats: [.init(pixelFormat: format)], events: [])
        let node = try ScriptedSystem(script).open("/dev/video0")
        let conversion = try #require(LibV4LConversion(node: node))
        let pictures = try [0, 12].map { padding in
            var bytes = content.flatMap { $0 + [UInt8](repeating: 255, count: padding) }
            var picture = [UInt8](repeating: 0, count: size.area * 3 / 2)
            let source = DeliveredFormat(
                pixelFormat: format,
                dimensions: size,
                bytesPerRow: row + padding,
                imageSize: bytes.count,
                field: V4L2_FIELD_NONE.rawValue,
                planeCount: 1
            )
            try bytes.withUnsafeMutableBytes { bytes in
                try picture.withUnsafeMutableBytes { try conversion.convert(bytes, source: source, into: $0) }
            }
            return picture
        }
        #expect(pictures[0] == pictures[1] && Set(pictures[0]).count > 20)
    }

    @Test("Rows that are missing are said to be, and nothing beyond the picture is read")
    func missingRows() throws {
        var bytes = [UInt8](0..<40)
        try bytes.withUnsafeMutableBytes { bytes in
            #expect(throws: DamagedPicture.self) {
                _ = try LibV4LConversion.removePadding(bytes, rows: 5, each: 10, of: 6)
            }
            let packed = try LibV4LConversion.removePadding(bytes, rows: 4, each: 10, of: 6)
            let rows = ([0, 10, 20, 30] as [UInt8]).flatMap { [UInt8]($0..<$0 + 6) }
            #expect(Array(packed) == rows)
        }
    }
}
