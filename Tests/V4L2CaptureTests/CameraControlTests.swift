import CV4L2
import Capture
import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import V4L2Capture

@Suite("Controls", .timeLimit(.minutes(1)))
struct CameraControlTests {
    private var script: CameraScript {
        var script = CameraScript(events: CameraScript.steady(3) + [.trouble([.failed, .gone], status: ENODEV)])
        script.controls = [
            .init(id: 10, label: "Brightness", range: -64...64),
            .init(
                id: 20,
                type: V4L2_CTRL_TYPE_MENU.rawValue,
                label: "Power Line Frequency",
                range: 0...3,
                menu: [0: "Disabled", 1: "50 Hz", 3: "Auto"]
            ),
            .init(id: 25, type: V4L2_CTRL_TYPE_CTRL_CLASS.rawValue, label: "Camera Controls"),
            .init(id: 30, label: "Exposure Time, Absolute", range: 1...5000, flags: UInt32(V4L2_CTRL_FLAG_INACTIVE)),
            .init(id: 40, type: V4L2_CTRL_TYPE_BUTTON.rawValue, label: "Reset", range: 0...0),
            .init(id: 50, label: "Temperature", flags: UInt32(V4L2_CTRL_FLAG_READ_ONLY)),
            .init(id: 60, label: "Gone", flags: UInt32(V4L2_CTRL_FLAG_DISABLED)),
        ]
        return script
    }

    @Test(
        "A control is called as v4l2-ctl calls it",
        arguments: [
            ("Brightness", "brightness"), ("White Balance, Automatic", "white_balance_automatic"),
            ("Exposure Time, Absolute", "exposure_time_absolute"), ("Pan (Absolute)", "pan_absolute"),
            ("Focus, Auto", "focus_auto"), ("50 Hz  filter", "50_hz_filter"), ("", ""),
        ]
    )
    func names(label: String, name: String) {
        #expect(CaptureControl.name(for: label) == name)
    }

    @Test("Controls are listed with range, default, value and the entries of a menu; headings are left out")
    func listing() throws {
        let source = makeSource(ScriptedSystem(script))
        let controls = try source.controls
        #expect(
            controls.map(\.name) == [
                "brightness", "power_line_frequency", "exposure_time_absolute", "reset", "temperature",
            ]
        )
        let brightness = try #require(controls.first)
        #expect(brightness.range == -64...64 && brightness.defaultValue == -64 && brightness.value == -64)
        #expect(controls[1].kind == .menu && controls[1].menu.map(\.value) == [0, 1, 3])
        #expect(controls[1].menu.map(\.name) == ["Disabled", "50 Hz", "Auto"])
        #expect(controls[2].isInactive && controls[3].value == nil && controls[4].isReadOnly)
    }

    @Test(
        "A value is set by number, and that of a menu by name too",
        arguments: [
            ("brightness", "-64", -64), ("power_line_frequency", "3", 3), ("power_line_frequency", "50 hz", 1),
            ("reset", "1", 1), ("brightness", "0x1F", 31), ("brightness", "-0x10", -16), ("brightness", "default", -64),
            ("power_line_frequency", "Default", 0),
        ]
    )
    func setting(name: String, text: String, value: Int32) throws {
        let script = script
        try makeSource(ScriptedSystem(script)).setControl(name, to: text)
        #expect(script.settings.withLock { $0.map(\.value) } == [value])
    }

    @Test(
        "A control or value that cannot be set is refused with those that can",
        arguments: [
            ("brightnes", "1", "noSuchControl", "brightness, power_line_frequency"),
            ("brightness", "65", "controlOutOfRange", "-64 to 64, not 65"),
            ("brightness", "high", "controlOutOfRange", "-64 to 64, not \"high\""),
            ("brightness", "0x-1", "controlOutOfRange", "-64 to 64, not \"0x-1\""),
            ("power_line_frequency", "2", "controlOutOfRange", "0 (Disabled), 1 (50 Hz), 3 (Auto), not 2"),
            ("temperature", "20", "controlOutOfRange", "only be read"),
            ("exposure_time_absolute", "100", "controlRefused", "auto_exposure=1"),
            ("gone", "1", "noSuchControl", "no such control"),
        ]
    )
    func refused(name: String, text: String, code: String, says: String) throws {
        let script = script
        let source = makeSource(ScriptedSystem(script))
        let error = try #require(throws: CameraError.self) { try source.setControl(name, to: text) }
        #expect(error.code.name == code && error.description.contains(says), "\(error)")
        #expect(script.settings.withLock { $0.isEmpty } && source.selection.settings.isEmpty)
    }

    @Test("A value out of range that is set while the camera captures is refused, and the capture goes on")
    func refusedWhileCapturing() async throws {
        var script = script
        script.events = CameraScript.steady(10_000)
        script.intervalMilliseconds = 5
        let system = ScriptedSystem(script)
        let source = makeSource(system)
        let sink = RecordingSink()
        source.sink = sink
        try await source.startCapture()
        sink.waitForFrames(3)
        for (name, value) in [("brightness", 65), ("power_line_frequency", 2)] as [(String, Int64)] {
            let error = try #require(throws: CameraError.self) { try source.setControl(name, to: value) }
            #expect(error.code == .controlOutOfRange, "\(error)")
            sink.waitForFrames(sink.count + 10)
        }
        #expect(source.failure == nil && source.captureStatistics.interruptions == 0)
        #expect(script.settings.withLock { $0.isEmpty } && source.selection.settings.isEmpty)
        #expect(system.calls(cv4l2_STREAMON) == 1 && system.record.withLock { $0.openNodes } == 1)
        try source.setControl("brightness", to: 64)
        sink.waitForFrames(sink.count + 10)
        #expect(script.settings.withLock { $0.map(\.value) } == [64] && source.failure == nil)
        await source.stopCapture()
        #expect(system.isAllClosed)
    }

    @Test("A camera without controls says so")
    func none() throws {
        let source = makeSource(ScriptedSystem(CameraScript()))
        #expect(try source.controls.isEmpty)
        let error = try #require(throws: CameraError.self) { try source.setControl("brightness", to: 1) }
        #expect(error.description.contains("no controls"))
    }

    // The exposure came before the mode that it needs, was refused, and stayed at the driver's value.
    @Test("A control that was set before the one that frees it is set again too, without a warning")
    func overruled() throws {
        var script = CameraScript()
        script.controls = [
            .init(id: 10, label: "Auto Exposure", range: 0...3),
            .init(id: 20, label: "Exposure Time, Absolute", range: 1...5000, overruler: (id: 10, unless: 1)),
        ]
        let (device, path) = try CameraDirectory(system: ScriptedSystem(script)).open(testDevice)
        let controls = CameraControls(device: device, path: path) { nil }
        let exposure = ControlSetting(name: "exposure_time_absolute", value: 300)
        #expect(controls.set([exposure, ControlSetting(name: "auto_exposure", value: 1)]).isEmpty)
        #expect(script.settings.withLock { $0.map(\.value) } == [1, 300])
        try controls.set("auto_exposure", to: "3")
        #expect(controls.set([exposure]).map(\.code) == [.controlRefused], "nothing frees it")
    }

    private var exposureScript: CameraScript {
        var script = CameraScript()
        script.controls = [
            .init(id: 10, label: "Auto Exposure", range: 0...3),
            .init(id: 20, label: "Exposure Time, Absolute", range: 1...5000, overruler: (id: 10, unless: 1)),
            .init(id: 30, label: "Gain", range: 0...9),
        ]
        return script
    }

    // `--control exposure_time_absolute=300 --control auto_exposure=1` was refused, and the other order was not.
    @Test("Several controls are set in any order, with a source and without one, and the driver's values come back")
    func anyOrder() throws {
        let script = exposureScript
        let source = makeSource(ScriptedSystem(script))
        let wanted = [("exposure_time_absolute", "300"), ("gain", "2"), ("auto_exposure", "1"), ("gain", "0x3")]
        try source.setControls(wanted)
        #expect(script.settings.withLock { $0.map(\.value) } == [1, 3, 300])
        #expect(source.selection.settings.map(\.value) == [300, 1, 3])

        let other = exposureScript
        let made = try CameraSource.setControls(wanted, captureDevice: testDevice, system: ScriptedSystem(other))
        #expect(made.map(\.name) == ["exposure_time_absolute", "auto_exposure", "gain"])
        #expect(made.map(\.value) == [300, 1, 3] && other.settings.withLock { $0.count } == 3)
    }

    // vivid and many sensors do so: the value was lost, and reported as set.
    @Test("A driver that takes a value which does not count yet has it in the end, also when opened again")
    func overruledValue() async throws {
        var script = exposureScript
        script.controls[1].takesOverruledValues = true
        let source = makeSource(ScriptedSystem(script))
        func value() -> Int32? { script.settings.withLock { $0.last { $0.id == 20 }?.value } }
        try source.setControls([("exposure_time_absolute", "300"), ("auto_exposure", "1")])
        #expect(value() == 300)
        script.settings.withLock { $0 = [] }
        try await source.startCapture()
        #expect(value() == 300)
        await source.stopCapture()
    }

    @Test("One name or value that is wrong sets nothing; one control that is refused leaves the others set, and kept")
    func partlyRefused() throws {
        let script = exposureScript
        let source = makeSource(ScriptedSystem(script))
        for wrong in [("gainn", "1"), ("gain", "10")] {
            #expect(throws: CameraError.self) { try source.setControls([("auto_exposure", "1"), wrong]) }
        }
        #expect(script.settings.withLock { $0.isEmpty } && source.selection.settings.isEmpty)
        let error = #expect(throws: CameraError.self) {
            try source.setControls([("exposure_time_absolute", "300"), ("gain", "2")])
        }
        #expect(error?.code == .controlRefused && error?.description.contains("auto_exposure=1") == true)
        #expect(source.selection.settings == [ControlSetting(name: "gain", value: 2)])
    }

    // Each opening moved the camera further, and pressed its buttons again.
    @Test("Buttons and movements are set once, and not again when the camera is opened")
    func actions() async throws {
        var script = script
        let ids = [UInt32(V4L2_CID_PAN_RELATIVE), UInt32(V4L2_CID_ZOOM_CONTINUOUS)]
        script.controls += [
            .init(id: 70, label: "Strobe", flags: UInt32(V4L2_CTRL_FLAG_EXECUTE_ON_WRITE)),
            .init(id: 80, label: "Focus, Relative", flags: UInt32(V4L2_CTRL_FLAG_WRITE_ONLY)),
            .init(id: ids[0], label: "Pan, Relative"), .init(id: ids[1], label: "Zoom, Continuous"),
        ]
        let source = makeSource(ScriptedSystem(script))
        try source.setControl("reset", to: 1)
        try source.setControls([("strobe", "1"), ("focus_relative", "3"), ("brightness", "7"), ("pan_relative", "5")])
        try source.setControl("zoom_continuous", to: 2)
        #expect(source.selection.settings == [ControlSetting(name: "brightness", value: 7)])
        #expect(script.settings.withLock { Set($0.map(\.id)) } == [10, 40, 70, 80, ids[0], ids[1]])
        script.settings.withLock { $0 = [] }
        try await source.startCapture()
        #expect(script.settings.withLock { $0.map(\.id) } == [10])
        await source.stopCapture()
    }

    @Test("Controls that were set are set again, in order, when the camera was plugged in anew")
    func kept() async throws {
        let system = ScriptedSystem(script)
        let source = makeSource(system, outageLimit: nil)
        let sink = RecordingSink()
        source.sink = sink
        try source.setControl("brightness", to: 5)
        try source.setControl("power_line_frequency", to: 1)
        try source.setControl("brightness", to: 7)
        try await source.startCapture()
        sink.waitForFrames(3)
        var back = script
        back.events = CameraScript.steady(3) + [.silence]
        system.plug(["/dev/video4": back])
        // The first camera may have been opened again before, and its frames say nothing.
        _ = sink.received.waitPatiently { _ in back.settings.withLock { $0.count } >= 2 ? true : nil }
        await source.stopCapture()
        #expect(back.settings.withLock { $0.map(\.id) }.prefix(2) == [20, 10])
        #expect(back.settings.withLock { $0.map(\.value) }.prefix(2) == [1, 7])
    }
}
