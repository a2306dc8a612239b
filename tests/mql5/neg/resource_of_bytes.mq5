// translate: only `#resource "file" as string Name` is translated
#resource "fine_text.mq5" as uchar Bytes[]
void OnStart()
  {
   Print(ArraySize(Bytes));
  }
